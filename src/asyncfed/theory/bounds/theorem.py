"""Theorem 1: as printed, as its proof ends (eq. 40), and corrected. Without staleness; none of them knows τ_max.

Assumptions of the corrected one: no staleness; the J clients are a uniform subset, independent of the model; the deltas
are added (or each client starts from the one before it); every client L-smooth and μ-strongly convex; Assumption 2 with
δ²; constant step λ̃ = λ J I ≤ 1/(6L). For servers that average, and for τ > 0, use R* instead.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.arguments import Curve, as_curve, cohort, count, curvature, in_range, number, whole
from asyncfed.theory.bounds.transient import averaged_remaining, growing_weights, remaining


class TheoremRun(TypedDict):
    """The keywords that describe a run to the theorem; `theorem_as_printed` says what each may be."""

    smoothness: float
    strong_convexity: float
    gradient_variance: float
    optimum_heterogeneity: float
    num_clients: int
    cohort_size: int
    local_steps: int
    learning_rate: float
    start_distance_squared: float


def theorem_weights_as_printed(
    *, strong_convexity: float, effective_step: float, last_index: int
) -> NDArray[np.float64]:
    """π_j = (1 − μλ̃/2)^(j+1), j = 0 … 𝒥, scaled to sum to 1. Wrong: they favour the start and the bound fails.

    >>> theorem_weights_as_printed(strong_convexity=1, effective_step=1, last_index=1)
    array([0.66666667, 0.33333333])
    """
    return theorem_weights(strong_convexity=strong_convexity, effective_step=effective_step, last_index=last_index)[
        ::-1
    ]


def theorem_weights(*, strong_convexity: float, effective_step: float, last_index: int) -> NDArray[np.float64]:
    """Corrected: π_j = (1 − μλ̃/2)^−(j+1), j = 0 … 𝒥, scaled to sum to 1. μ, λ̃ > 0, μλ̃ < 2.

    >>> theorem_weights(strong_convexity=1, effective_step=1, last_index=1)
    array([0.33333333, 0.66666667])
    """
    return growing_weights(contraction=half_contraction(strong_convexity, effective_step), last_index=last_index)


def theorem_as_printed(
    *,
    smoothness: float,
    strong_convexity: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    local_steps: int,
    learning_rate: float,
    start_distance_squared: float,
    last_index: ArrayLike,
    check_step: bool = True,
) -> Curve:
    """Theorem 1 as printed, λ̃ = λ C I: (9/2) μ d0 e^(−μλ̃𝒥/2) + 12λ̃δ²/(CI) + 18Lλ̃²δ²/(CI) + 18Lλ̃²ν*²/C.

    Not a valid bound for J < C, for short runs, with the printed weights, or with staleness (see counter_examples).
    0 < μ ≤ L; δ², ν*² ≥ 0; C, I ≥ 1; λ > 0; 𝒥 `last_index` ≥ 0, a number or an array. `check_step` refuses λ̃ > 1/(6L).

    >>> value = theorem_as_printed(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...     num_clients=10, local_steps=20, learning_rate=1 / 4800, start_distance_squared=3, last_index=300)
    >>> f"{value:.6g}"
    '0.321574'
    """
    return theorem_of_proof(
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        gradient_variance=gradient_variance,
        optimum_heterogeneity=optimum_heterogeneity,
        num_clients=num_clients,
        cohort_size=num_clients,
        local_steps=local_steps,
        learning_rate=learning_rate,
        start_distance_squared=start_distance_squared,
        last_index=last_index,
        check_step=check_step,
    )


def theorem_of_proof(*, last_index: ArrayLike, check_step: bool = True, **run: Unpack[TheoremRun]) -> Curve:
    """Eq. 40, where the proof ends (with 𝒥 for its misprinted J in the exponent), λ̃ = λ J I, at any number of rounds:

    (9/2) μ d0 e^(−μλ̃𝒥/2) + 12λ̃δ²/(JI) + 12λ̃(C−J)ν*²/(J(C−1)) + 18Lλ̃²δ²/(JI) + 18Lλ̃²ν*²/J.

    Valid where `enough_rounds` says so. Arguments as `theorem_as_printed`, and 1 ≤ J ≤ C.

    >>> value = theorem_of_proof(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...     num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400, start_distance_squared=3,
    ...     last_index=300)
    >>> f"{value:.6g}"
    '0.429908'
    """
    convexity, start, step = theorem_numbers(run, check_step)
    transient = 4.5 * convexity * start * np.exp(-convexity * step * whole("last_index", last_index) / 2)
    return as_curve(transient + theorem_noise(**run))


def theorem_exponential(*, last_index: ArrayLike, **run: Unpack[TheoremRun]) -> Curve:
    """Corrected Theorem 1 with the exponential transient: eq. 40, refused while (1 − μλ̃/2)^(𝒥+1) > 2/3.

    Arguments as `theorem_of_proof`; λ̃ ≤ 1/(6L) is always asked for.

    >>> value = theorem_exponential(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...     num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400, start_distance_squared=3,
    ...     last_index=300)
    >>> f"{value:.6g}"
    '0.429908'
    """
    value = theorem_of_proof(last_index=last_index, **run)
    step = run["learning_rate"] * run["cohort_size"] * run["local_steps"]
    needed = rounds_needed(strong_convexity=run["strong_convexity"], effective_step=step)
    in_range(
        "last_index",
        last_index,
        at_least=needed - 1,
        advice=f"The constant 9/2 needs {needed} rounds; theorem_corrected holds for any number.",
    )
    return value


def theorem_corrected(*, last_index: ArrayLike, **run: Unpack[TheoremRun]) -> Curve:
    """Corrected Theorem 1 with the exact transient: (3μ/2) d0 a/(1−a) and the noise of eq. 40; a = (1 − μλ̃/2)^(𝒥+1).

    Bounds E F(x̄) − F* for the weights of `theorem_weights`, at any number of rounds. Arguments as `theorem_of_proof`.

    >>> value = theorem_corrected(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...     num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400, start_distance_squared=3,
    ...     last_index=300)
    >>> f"{value:.6g}"
    '0.233872'
    """
    convexity, start, step = theorem_numbers(run, check_step=True)
    left = averaged_remaining(contraction=convexity * step / 2, last_index=last_index)
    return as_curve(1.5 * convexity * start * left + theorem_noise(**run))


def theorem_noise(**run: Unpack[TheoremRun]) -> float:
    """The part of eq. 40 that rounds do not shrink; with C = 1 the drawing of clients adds nothing.

    >>> theorem_noise(smoothness=1, strong_convexity=1, gradient_variance=0, optimum_heterogeneity=1, num_clients=2,
    ...               cohort_size=1, local_steps=1, learning_rate=1 / 8, start_distance_squared=0)
    1.78125
    """
    clients, size = cohort(run["num_clients"], run["cohort_size"])
    steps = count("local_steps", run["local_steps"], at_least=1)
    step = number("learning_rate", run["learning_rate"], above=0) * size * steps
    noise = number("gradient_variance", run["gradient_variance"], at_least=0) / (size * steps)
    spread = number("optimum_heterogeneity", run["optimum_heterogeneity"], at_least=0)
    drawing = (clients - size) / (size * (clients - 1)) * spread if clients > 1 else 0.0
    return 12 * step * (noise + drawing) + 18 * run["smoothness"] * step**2 * (noise + spread / size)


def enough_rounds(*, strong_convexity: float, effective_step: float, last_index: ArrayLike) -> Curve:
    """Is a = (1 − μλ̃/2)^(𝒥+1) ≤ 2/3, which the constant 9/2 needs? The paper does not ask. Boolean, or an array.

    >>> enough_rounds(strong_convexity=1, effective_step=1 / 6, last_index=[0, 10])
    array([False,  True])
    """
    left = remaining(contraction=half_contraction(strong_convexity, effective_step), last_index=last_index)
    return left <= 2 / 3


def rounds_needed(*, strong_convexity: float, effective_step: float) -> int:
    """The smallest number of rounds 𝒥 + 1 with (1 − μλ̃/2)^(𝒥+1) ≤ 2/3. μ, λ̃ > 0, μλ̃ < 2.

    >>> rounds_needed(strong_convexity=1, effective_step=1 / 6)
    5
    """
    return int(np.ceil(np.log(1.5) / -np.log1p(-half_contraction(strong_convexity, effective_step))))


def half_contraction(strong_convexity: float, effective_step: float) -> float:
    """μλ̃/2, in (0, 1)."""
    curve, step = (
        number("strong_convexity", strong_convexity, above=0),
        number("effective_step", effective_step, above=0),
    )
    return number("strong_convexity * effective_step / 2", curve * step / 2, below=1, advice="Take a smaller step.")


def theorem_numbers(run: TheoremRun, check_step: bool) -> tuple[float, float, float]:
    """μ, d0 and λ̃ = λ J I, which is refused above 1/(6L) unless told not to check."""
    smoothness, convexity = curvature(run["smoothness"], run["strong_convexity"])
    clients = count("cohort_size", run["cohort_size"], at_least=1)
    steps = count("local_steps", run["local_steps"], at_least=1)
    step, limit = number("learning_rate", run["learning_rate"], above=0) * clients * steps, 1 / (6 * smoothness)
    if check_step and step > limit * (1 + 1e-12):
        raise ConfigError(
            f"The effective step λ̃ is {step:.6g}, but the theorem asks for at most 1/(6 L) = {limit:.6g}. "
            f"Divide learning_rate by {step / limit:.4g}, or look at the formula alone with check_step=False."
        )
    return convexity, number("start_distance_squared", run["start_distance_squared"], at_least=0), step
