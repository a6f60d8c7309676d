"""The steps of R*, R and R-conv: the effective step γ = η Σ λ_i, up to which γ they hold, and the noise N1, N2.

m = max(1, τ + 1/η) throughout.
"""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import count, number
from asyncfed.theory.bounds.local_rates import local_rates
from asyncfed.theory.bounds.settings import ANY_RATES, StaleSetting


class StaleNoise(NamedTuple):
    """N1, the noise of one server step, and N2, the noise in how far a stale local model is from the server's.

    Attributes:
        first_order: N1 ≥ 0, squared.
        second_order: N2 ≥ 0, squared.
    """

    first_order: float
    second_order: float


@explain_arguments()
def delay_factor(*, staleness: int, server_step: float = 1.0) -> float:
    """m = max(1, τ + 1/η): how many steps old a merged gradient is, at most.

    >>> delay_factor(staleness=3, server_step=1.0)
    4.0
    """
    return max(1.0, count("staleness", staleness) + 1 / number("server_step", server_step, above=0))


@explain_arguments(learning_rate=ANY_RATES)
def effective_step(*, learning_rate: ArrayLike, local_steps: int, server_step: float = 1.0) -> float:
    """γ = η Σ λ_i (= η λ I): how far one round moves the server per unit of gradient.

    >>> effective_step(learning_rate=1 / 2560, local_steps=20)
    0.0078125
    """
    return number("server_step", server_step, above=0) * local_rates(learning_rate, local_steps).total


@explain_arguments()
def stale_noise(setting: StaleSetting) -> StaleNoise:
    """N1 = δ²/(J I) + (C−J) ν*²/(J (C−1)) and N2 = τ N1 + (δ²/I + ν*²)/η²; with C = 1 the middle part is 0.

    With unequal local rates δ²/I reads δ² Σλ_i²/(Σλ_i)².

    >>> run = StaleSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                    num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3,
    ...                    start_distance_squared=3)
    >>> noise = stale_noise(run)
    >>> f"{noise.first_order:.6g} {noise.second_order:.6g}"
    '0.186667 2.16'
    """
    clients, size, spread = setting.num_clients, setting.cohort_size, setting.optimum_heterogeneity
    of_client = setting.gradient_variance / local_rates(setting.learning_rate, setting.local_steps).equal_steps
    of_drawing = (clients - size) / (size * (clients - 1)) * spread if clients > 1 else 0.0
    first = of_client / size + of_drawing
    return StaleNoise(first, setting.staleness * first + (of_client + spread) / setting.server_step**2)


@explain_arguments()
def largest_effective_step(*, smoothness: float, staleness: int, server_step: float = 1.0) -> float:
    """γ_max = 1/(8 L m), the largest γ for which R*, R and R-conv are proved.

    >>> largest_effective_step(smoothness=4, staleness=3)
    0.0078125
    """
    return 1 / (
        8 * number("smoothness", smoothness, above=0) * delay_factor(staleness=staleness, server_step=server_step)
    )


@explain_arguments()
def largest_stale_learning_rate(
    *, smoothness: float, staleness: int, local_steps: int, server_step: float = 1.0, shape: ArrayLike = 1.0
) -> float:
    """The largest local rate λ with η λ Σ shape_i ≤ 1/(8 L m).

    >>> largest_stale_learning_rate(smoothness=15.846, staleness=5, local_steps=350)  # doctest: +ELLIPSIS
    3.756...e-06
    """
    limit = largest_effective_step(smoothness=smoothness, staleness=staleness, server_step=server_step)
    return limit / effective_step(learning_rate=shape, local_steps=local_steps, server_step=server_step)


def proved_step(setting: StaleSetting, check_step: bool) -> float:
    """γ of a run, which is refused above 1/(8 L m) if `check_step`."""
    delay, server = setting.staleness, setting.server_step
    step = effective_step(learning_rate=setting.learning_rate, local_steps=setting.local_steps, server_step=server)
    limit = largest_effective_step(smoothness=setting.smoothness, staleness=delay, server_step=server)
    if check_step and step > limit * (1 + 1e-12):
        raise ConfigError(
            f"The effective step η·λ·I is {step:.6g}, but the bound is proved up to 1/(8 L m) = {limit:.6g} only. "
            f"Divide learning_rate by {step / limit:.4g}, or pass check_step=False to see the formula's number."
        )
    return step
