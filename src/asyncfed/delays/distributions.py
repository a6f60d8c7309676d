"""Distributions of durations, in seconds, and of the factors that stretch them.

Each is a frozen value that turns one uniform number into one draw by its inverse cumulative distribution function, so a
draw costs one uniform number and never falls as that number grows.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log1p, pow
from statistics import NormalDist
from typing import Any, Protocol, runtime_checkable

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.delays.checks import require_non_negative, require_positive
from asyncfed.registry import declare_part, register

LARGEST_UNIT = 1.0 - 2.0**-53
"""The largest float below 1: no uniform number exceeds it."""

SMALLEST_UNIT = 2.0**-53
"""No uniform number of a draw is smaller."""

_normal_quantile = NormalDist().inv_cdf


@runtime_checkable
class Distribution(Protocol):
    """What a distribution is; `asyncfed.register("distribution")` makes one of your own known by its kind.

    >>> from asyncfed import Config
    >>> class Triangular(Config, tag_field="kind", tag="triangular"):
    ...     highest: float
    ...     is_constant = False
    ...     is_exponential = False
    ...
    ...     def draw(self, u: float) -> float:
    ...         return self.highest * u**0.5
    ...
    ...     def expected(self) -> float:
    ...         return self.highest * 2 / 3
    >>> isinstance(Triangular(highest=3.0), Distribution)
    True
    """

    @property
    def is_constant(self) -> bool:
        """Whether every draw is the same number, `expected()`; then none is made."""

    @property
    def is_exponential(self) -> bool:
        """Whether it is exponential, which makes the formulas of queueing exact."""

    def draw(self, u: float) -> float:
        """The draw of a uniform number, 0 < u < 1: finite, 0 or more, and never falling as u grows."""

    def expected(self) -> float:
        """The mean of all draws; `math.inf` where it is infinite."""


declare_part("distribution", Distribution)


class HasNumbers(Distribution, Protocol):
    """A distribution that compiled code can draw from: the shipped ones are. One of your own need not be."""

    def as_numbers(self) -> tuple[str, float, float]:
        """The name of its shape in `kernels/duration_draws.py`, and its two numbers."""


@register("distribution")
class Constant(Config, tag_field="kind", tag="constant"):
    """Always the same value.

    Args:
        value: seconds, or a factor; finite and 0 or more.

    >>> Constant(value=2.0).draw(0.3)
    2.0
    """

    value: float

    def __post_init__(self) -> None:
        require_non_negative("constant.value", self.value)

    @property
    def is_constant(self) -> bool:
        """True."""
        return True

    @property
    def is_exponential(self) -> bool:
        """False."""
        return False

    def draw(self, u: float) -> float:
        """`value`, whatever `u` is."""
        return self.value

    def as_numbers(self) -> tuple[str, float, float]:
        """The shape and its two numbers, for compiled draws (`kernels/duration_draws.py`)."""
        return "constant", self.value, 0.0

    def expected(self) -> float:
        """`value`."""
        return self.value


class _Varying(Config):
    """What the distributions below answer to the two questions, unless they say otherwise."""

    @property
    def is_constant(self) -> bool:
        """False: draws differ."""
        return False

    @property
    def is_exponential(self) -> bool:
        """False: it has another shape."""
        return False


@register("distribution")
class Uniform(_Varying, tag_field="kind", tag="uniform"):
    """Uniform on [low, high]: `low + u * (high - low)`.

    Args:
        low: the least value, finite and 0 or more.
        high: the largest value, finite and at least `low`.

    >>> Uniform(low=1.0, high=3.0).draw(0.25)
    1.5
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        require_non_negative("uniform.low", self.low)
        require_non_negative("uniform.high", self.high)
        if self.low > self.high:
            raise ConfigError(f"uniform.low is {self.low} and uniform.high is {self.high}; low must not exceed high.")

    def draw(self, u: float) -> float:
        """`low + u * (high - low)`."""
        return self.low + u * (self.high - self.low)

    def as_numbers(self) -> tuple[str, float, float]:
        """The shape and its two numbers, for compiled draws (`kernels/duration_draws.py`)."""
        return "uniform", self.low, self.high

    def expected(self) -> float:
        """`(low + high) / 2`."""
        return self.low + 0.5 * (self.high - self.low)


@register("distribution")
class Exponential(_Varying, tag_field="kind", tag="exponential"):
    """Exponential: `-mean * log(1 - u)`.

    Args:
        mean: the mean, above 0.

    >>> Exponential(mean=2.0).expected()
    2.0
    """

    mean: float

    def __post_init__(self) -> None:
        require_positive("exponential.mean", self.mean, 'For no delay write kind = "constant", value = 0.')
        _require_finite_draws(self, "exponential", "Lower mean.")

    @property
    def is_exponential(self) -> bool:
        """True."""
        return True

    def draw(self, u: float) -> float:
        """`-mean * log(1 - u)`."""
        return -self.mean * log1p(-u)

    def as_numbers(self) -> tuple[str, float, float]:
        """The shape and its two numbers, for compiled draws (`kernels/duration_draws.py`)."""
        return "exponential", self.mean, 0.0

    def expected(self) -> float:
        """`mean`."""
        return self.mean


@register("distribution")
class ShiftedExponential(_Varying, tag_field="kind", tag="shifted_exponential"):
    """A constant part and an exponential one: `shift - mean * log(1 - u)`; it averages `shift + mean`.

    Args:
        shift: the constant part, finite and 0 or more.
        mean: the mean of the exponential part, above 0.

    >>> ShiftedExponential(shift=1.0, mean=2.0).expected()
    3.0
    """

    shift: float
    mean: float

    def __post_init__(self) -> None:
        require_non_negative("shifted_exponential.shift", self.shift)
        require_positive(
            "shifted_exponential.mean", self.mean, 'For the shift alone write kind = "constant", value = shift.'
        )
        _require_finite_draws(self, "shifted_exponential", "Lower shift or mean.")

    def draw(self, u: float) -> float:
        """`shift - mean * log(1 - u)`."""
        return self.shift - self.mean * log1p(-u)

    def as_numbers(self) -> tuple[str, float, float]:
        """The shape and its two numbers, for compiled draws (`kernels/duration_draws.py`)."""
        return "shifted_exponential", self.shift, self.mean

    def expected(self) -> float:
        """`shift + mean`."""
        return self.shift + self.mean


@register("distribution")
class LogNormal(_Varying, tag_field="kind", tag="lognormal"):
    """Log-normal: `median * exp(sigma * z)`, z the normal quantile of u; it averages `median * exp(sigma**2 / 2)`.

    Args:
        median: the median, above 0.
        sigma: the standard deviation of the logarithm, 0 or more.

    >>> LogNormal(median=2.0, sigma=0.5).draw(0.5)
    2.0
    """

    median: float
    sigma: float

    def __post_init__(self) -> None:
        require_positive("lognormal.median", self.median, 'For no delay write kind = "constant", value = 0.')
        require_non_negative("lognormal.sigma", self.sigma)
        _require_finite_draws(self, "lognormal", "Lower sigma or median.")

    def draw(self, u: float) -> float:
        """`median * exp(sigma * z)`."""
        return self.median * exp(self.sigma * _normal_quantile(u))

    def as_numbers(self) -> tuple[str, float, float]:
        """The shape and its two numbers, for compiled draws (`kernels/duration_draws.py`)."""
        return "lognormal", self.median, self.sigma

    def expected(self) -> float:
        """`median * exp(sigma**2 / 2)`; infinite where that is too large for a float."""
        try:
            return self.median * exp(0.5 * self.sigma * self.sigma)
        except OverflowError:
            return inf


@register("distribution")
class Pareto(_Varying, tag_field="kind", tag="pareto"):
    """Pareto, with a heavy tail: `minimum * (1 - u)**(-1 / shape)`.

    Args:
        minimum: the least value, above 0.
        shape: above 0; the smaller, the heavier the tail. The mean is infinite when it is at most 1.

    >>> Pareto(minimum=1.0, shape=2.0).draw(0.75)
    2.0
    """

    minimum: float
    shape: float

    def __post_init__(self) -> None:
        require_positive("pareto.minimum", self.minimum)
        require_positive("pareto.shape", self.shape)
        _require_finite_draws(self, "pareto", "Raise shape or lower minimum.")

    def draw(self, u: float) -> float:
        """`minimum * (1 - u)**(-1 / shape)`."""
        return self.minimum * pow(1.0 - u, -1.0 / self.shape)

    def as_numbers(self) -> tuple[str, float, float]:
        """The shape and its two numbers, for compiled draws (`kernels/duration_draws.py`)."""
        return "pareto", self.minimum, self.shape

    def expected(self) -> float:
        """`minimum * shape / (shape - 1)`; infinite if `shape` is at most 1."""
        return self.minimum * self.shape / (self.shape - 1.0) if self.shape > 1.0 else inf


def require_positive_draws(name: str, distribution: Any) -> None:
    """Refuse what is no distribution, and one whose least draw is not a finite number > 0.

    Args:
        name: the field, named in the message.
        distribution: what stands there.
    """
    if not isinstance(distribution, Distribution):
        raise ConfigError(
            f"{name} is {distribution!r}; it must be a distribution, drawn from once per client. For the same value "
            "everywhere write Constant(value=...)."
        )
    least = distribution.expected() if distribution.is_constant else distribution.draw(SMALLEST_UNIT)
    if not (isfinite(least) and least > 0):
        raise ConfigError(
            f"{name} is {distribution}, whose least draw is {least}; every draw must be a finite number above zero. "
            "Raise its lower end, or leave it out for no limit."
        )


def _require_finite_draws(distribution: Distribution, kind: str, next_step: str) -> None:
    """Refuse parameters whose rarest draw is too large for a float, now rather than in the middle of a run."""
    try:
        largest = distribution.draw(LARGEST_UNIT)
    except OverflowError:
        largest = inf
    if not isfinite(largest):
        raise ConfigError(f"{kind}: the largest draw of {distribution} is not a finite number. {next_step}")
