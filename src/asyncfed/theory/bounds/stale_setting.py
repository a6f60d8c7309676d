"""What R*, R and R-conv need of a run: its effective step γ = η Σ λ_i, up to which γ they hold, and its noise N1, N2.

m = max(1, τ + 1/η) throughout.
"""

from __future__ import annotations

from typing import NamedTuple, NotRequired, TypedDict

from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explained
from asyncfed.theory.bounds.arguments import cohort, count, curvature, number
from asyncfed.theory.bounds.local_rates import local_rates

ANY_RATES = "λ > 0 of the local steps: one number, or I of them."


class StaleRun(TypedDict):
    """The keywords that describe a run to R*, R and R-conv, start and horizon aside, to be passed on with `**`."""

    smoothness: float
    strong_convexity: float
    gradient_variance: float
    optimum_heterogeneity: float
    num_clients: int
    cohort_size: int
    local_steps: int
    learning_rate: ArrayLike
    staleness: int
    server_step: NotRequired[float]


class StaleNoise(NamedTuple):
    """N1, the noise of one server step, and N2, the noise in how far a stale local model is from the server's."""

    first_order: float
    second_order: float


@explained()
def delay_factor(*, staleness: int, server_step: float = 1.0) -> float:
    """m = max(1, τ + 1/η): how many steps old a merged gradient is, at most.

    >>> delay_factor(staleness=3, server_step=1.0)
    4.0
    """
    return max(1.0, count("staleness", staleness) + 1 / number("server_step", server_step, above=0))


@explained(learning_rate=ANY_RATES)
def effective_step(*, learning_rate: ArrayLike, local_steps: int, server_step: float = 1.0) -> float:
    """γ = η Σ λ_i (= η λ I): how far one round moves the server per unit of gradient.

    >>> effective_step(learning_rate=1 / 2560, local_steps=20)
    0.0078125
    """
    return number("server_step", server_step, above=0) * local_rates(learning_rate, local_steps).total


@explained(learning_rate=ANY_RATES)
def stale_noise(
    *,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    learning_rate: ArrayLike,
    local_steps: int,
    staleness: int,
    server_step: float = 1.0,
) -> StaleNoise:
    """N1 = δ²/(J I) + (C−J) ν*²/(J (C−1)) and N2 = τ N1 + (δ²/I + ν*²)/η²; with C = 1 the middle part is 0.

    With unequal local rates δ²/I reads δ² Σλ_i²/(Σλ_i)².

    >>> noise = stale_noise(gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10, cohort_size=5,
    ...                     learning_rate=1 / 2560, local_steps=20, staleness=3)
    >>> f"{noise.first_order:.6g} {noise.second_order:.6g}"
    '0.186667 2.16'
    """
    clients, size = cohort(num_clients, cohort_size)
    delay, step = count("staleness", staleness), number("server_step", server_step, above=0)
    spread = number("optimum_heterogeneity", optimum_heterogeneity, at_least=0)
    noise = number("gradient_variance", gradient_variance, at_least=0)
    of_client = noise / local_rates(learning_rate, local_steps).equal_steps
    of_drawing = (clients - size) / (size * (clients - 1)) * spread if clients > 1 else 0.0
    first = of_client / size + of_drawing
    return StaleNoise(first, delay * first + (of_client + spread) / step**2)


@explained()
def largest_effective_step(*, smoothness: float, staleness: int, server_step: float = 1.0) -> float:
    """γ_max = 1/(8 L m), the largest γ for which R*, R and R-conv are proved.

    >>> largest_effective_step(smoothness=4, staleness=3)
    0.0078125
    """
    return 1 / (
        8 * number("smoothness", smoothness, above=0) * delay_factor(staleness=staleness, server_step=server_step)
    )


@explained()
def largest_stale_learning_rate(
    *, smoothness: float, staleness: int, local_steps: int, server_step: float = 1.0, shape: ArrayLike = 1.0
) -> float:
    """The largest local rate λ with η λ Σ shape_i ≤ 1/(8 L m).

    >>> largest_stale_learning_rate(smoothness=15.846, staleness=5, local_steps=350)  # doctest: +ELLIPSIS
    3.756...e-06
    """
    limit = largest_effective_step(smoothness=smoothness, staleness=staleness, server_step=server_step)
    return limit / effective_step(learning_rate=shape, local_steps=local_steps, server_step=server_step)


class StaleSetting(NamedTuple):
    """The numbers of a run as R*, R and R-conv use them: L, μ, γ and N1, N2."""

    smoothness: float
    convexity: float
    step: float
    noise: StaleNoise

    def floor(self, first: float, second: float) -> float:
        """first·γ N1 + second·L γ² N2."""
        curved = second * self.smoothness * self.step * self.noise.second_order
        return self.step * (first * self.noise.first_order + curved)


@explained(learning_rate=ANY_RATES)
def stale_setting(
    *,
    smoothness: float,
    strong_convexity: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    local_steps: int,
    learning_rate: ArrayLike,
    staleness: int,
    server_step: float = 1.0,
    check_step: bool = True,
) -> StaleSetting:
    """The run in the bounds' own numbers; refuses γ > 1/(8 L m) unless told not to check."""
    largest, smallest = curvature(smoothness, strong_convexity)
    step = effective_step(learning_rate=learning_rate, local_steps=local_steps, server_step=server_step)
    limit = largest_effective_step(smoothness=largest, staleness=staleness, server_step=server_step)
    if check_step and step > limit * (1 + 1e-12):
        raise ConfigError(
            f"The effective step η·λ·I is {step:.6g}, but the bound is proved up to 1/(8 L m) = {limit:.6g} only. "
            f"Divide learning_rate by {step / limit:.4g}, or pass check_step=False to see the formula's number."
        )
    noise = stale_noise(
        gradient_variance=gradient_variance,
        optimum_heterogeneity=optimum_heterogeneity,
        num_clients=num_clients,
        cohort_size=cohort_size,
        learning_rate=learning_rate,
        local_steps=local_steps,
        staleness=staleness,
        server_step=server_step,
    )
    return StaleSetting(largest, smallest, step, noise)
