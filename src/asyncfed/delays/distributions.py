"""Distributions of durations, in seconds, and of the factors that stretch them.

Each is a frozen value that turns one uniform number into one draw by its inverse cumulative distribution, so a draw
costs one uniform and is a growing function of it.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log1p, pow
from statistics import NormalDist
from typing import TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.delays.checks import require_non_negative, require_positive

LARGEST_UNIT = 1.0 - 2.0**-53
"""The largest float below 1: no uniform number exceeds it."""

_normal_quantile = NormalDist().inv_cdf


class Constant(Config, tag_field="kind", tag="constant"):
    """Always `value` (>= 0)."""

    value: float

    def __post_init__(self) -> None:
        require_non_negative("constant.value", self.value)

    def draw(self, u: float) -> float:
        return self.value

    def expected(self) -> float:
        return self.value


class Uniform(Config, tag_field="kind", tag="uniform"):
    """Uniform on [low, high], 0 <= low <= high: `low + u * (high - low)`.

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
        return self.low + u * (self.high - self.low)

    def expected(self) -> float:
        return self.low + 0.5 * (self.high - self.low)


class Exponential(Config, tag_field="kind", tag="exponential"):
    """Exponential with this `mean` (> 0): `-mean * log(1 - u)`."""

    mean: float

    def __post_init__(self) -> None:
        require_positive("exponential.mean", self.mean, 'For no delay write kind = "constant", value = 0.')
        _require_finite_draws(self, "exponential", "Lower mean.")

    def draw(self, u: float) -> float:
        return -self.mean * log1p(-u)

    def expected(self) -> float:
        return self.mean


class ShiftedExponential(Config, tag_field="kind", tag="shifted_exponential"):
    """A sure part and a random one: `shift - mean * log(1 - u)`, `shift` >= 0; it averages `shift + mean`."""

    shift: float
    mean: float

    def __post_init__(self) -> None:
        require_non_negative("shifted_exponential.shift", self.shift)
        require_positive(
            "shifted_exponential.mean", self.mean, 'For the shift alone write kind = "constant", value = shift.'
        )
        _require_finite_draws(self, "shifted_exponential", "Lower shift or mean.")

    def draw(self, u: float) -> float:
        return self.shift - self.mean * log1p(-u)

    def expected(self) -> float:
        return self.shift + self.mean


class LogNormal(Config, tag_field="kind", tag="lognormal"):
    """Log-normal: `median * exp(sigma * z)`, z the normal quantile of u; median > 0, sigma >= 0.

    It averages `median * exp(sigma**2 / 2)`.

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
        return self.median * exp(self.sigma * _normal_quantile(u))

    def expected(self) -> float:
        try:
            return self.median * exp(0.5 * self.sigma * self.sigma)
        except OverflowError:
            return inf


class Pareto(Config, tag_field="kind", tag="pareto"):
    """Pareto: `minimum * (1 - u)**(-1 / shape)`, both > 0. Its mean is infinite when `shape` <= 1.

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
        return self.minimum * pow(1.0 - u, -1.0 / self.shape)

    def expected(self) -> float:
        return self.minimum * self.shape / (self.shape - 1.0) if self.shape > 1.0 else inf


Distribution: TypeAlias = Constant | Uniform | Exponential | ShiftedExponential | LogNormal | Pareto


def _require_finite_draws(distribution: Distribution, kind: str, next_step: str) -> None:
    """Refuse parameters whose rarest draw is too large for a float, now rather than in the middle of a run."""
    try:
        largest = distribution.draw(LARGEST_UNIT)
    except OverflowError:
        largest = inf
    if not isfinite(largest):
        raise ConfigError(f"{kind}: the largest draw of {distribution} is not a finite number. {next_step}")
