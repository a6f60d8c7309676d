"""Theorem 1: as printed, as its proof ends (eq. 40), and corrected. Without staleness; none of them knows τ_max.

Assumptions of the corrected one: no staleness; the J clients are a uniform subset, independent of the model; the deltas
are added (or each client starts from the one before it); every client L-smooth and μ-strongly convex; Assumption 2 with
δ²; constant step λ̃ = λ J I ≤ 1/(6L). For servers that average, and for τ > 0, use R* instead.

All bound E F(x̄) − F*, an objective gap, for the weighted average x̄ of the 𝒥 + 1 models x_0 … x_𝒥; 𝒥 is `last_index`.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import MEANINGS, explained
from asyncfed.theory.bounds.arguments import Curve, as_curve, cohort, count, curvature, in_range, number, whole
from asyncfed.theory.bounds.transient import averaged_remaining, growing_weights, remaining

LAMBDA_TILDE = "λ̃ > 0, that is λ J I (the statement prints λ C I), with μλ̃ < 2."
ONE_HORIZON = "𝒥 ≥ 0. One weight for each of the 𝒥 + 1 models x_0 … x_𝒥."


class TheoremRun(TypedDict):
    """The keywords that describe a run to the theorem, horizon aside, to be passed on with `**`."""

    smoothness: float
    strong_convexity: float
    gradient_variance: float
    optimum_heterogeneity: float
    num_clients: int
    cohort_size: int
    local_steps: int
    learning_rate: float
    start_distance_squared: float


@explained(effective_step=LAMBDA_TILDE, last_index=ONE_HORIZON)
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


@explained(effective_step=LAMBDA_TILDE, last_index=ONE_HORIZON)
def theorem_weights(*, strong_convexity: float, effective_step: float, last_index: int) -> NDArray[np.float64]:
    """Corrected: π_j = (1 − μλ̃/2)^−(j+1), j = 0 … 𝒥, scaled to sum to 1.

    >>> theorem_weights(strong_convexity=1, effective_step=1, last_index=1)
    array([0.33333333, 0.66666667])
    """
    return growing_weights(contraction=half_contraction(strong_convexity, effective_step), last_index=last_index)


@explained(num_clients="C ≥ 1, all clients; as printed, it is C that takes the place of J.")
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
    There is no `cohort_size` in it. `check_step` refuses λ̃ > 1/(6L).

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


@explained()
def theorem_of_proof(
    *,
    smoothness: float,
    strong_convexity: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    local_steps: int,
    learning_rate: float,
    start_distance_squared: float,
    last_index: ArrayLike,
    check_step: bool = True,
) -> Curve:
    """Eq. 40, where the proof ends (with 𝒥 for its misprinted J in the exponent), λ̃ = λ J I, at any number of rounds:

    (9/2) μ d0 e^(−μλ̃𝒥/2) + 12λ̃δ²/(JI) + 12λ̃(C−J)ν*²/(J(C−1)) + 18Lλ̃²δ²/(JI) + 18Lλ̃²ν*²/J.

    Valid where `enough_rounds` says so. `check_step` refuses λ̃ > 1/(6L).

    >>> value = theorem_of_proof(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...     num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400, start_distance_squared=3,
    ...     last_index=300)
    >>> f"{value:.6g}"
    '0.429908'
    """
    convexity, step = theorem_step(smoothness, strong_convexity, cohort_size, local_steps, learning_rate, check_step)
    noise = theorem_noise(
        smoothness=smoothness,
        gradient_variance=gradient_variance,
        optimum_heterogeneity=optimum_heterogeneity,
        num_clients=num_clients,
        cohort_size=cohort_size,
        local_steps=local_steps,
        learning_rate=learning_rate,
    )
    start = number("start_distance_squared", start_distance_squared, at_least=0)
    transient = 4.5 * convexity * start * np.exp(-convexity * step * whole("last_index", last_index) / 2)
    return as_curve(transient + noise)


@explained(last_index=f"{MEANINGS['last_index']} At least `rounds_needed` − 1.")
def theorem_exponential(
    *,
    smoothness: float,
    strong_convexity: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    local_steps: int,
    learning_rate: float,
    start_distance_squared: float,
    last_index: ArrayLike,
    check_step: bool = True,
) -> Curve:
    """Corrected Theorem 1 with the exponential transient: eq. 40, refused while (1 − μλ̃/2)^(𝒥+1) > 2/3.

    `check_step` refuses λ̃ > 1/(6L).

    >>> value = theorem_exponential(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...     num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400, start_distance_squared=3,
    ...     last_index=300)
    >>> f"{value:.6g}"
    '0.429908'
    """
    value = theorem_of_proof(
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        gradient_variance=gradient_variance,
        optimum_heterogeneity=optimum_heterogeneity,
        num_clients=num_clients,
        cohort_size=cohort_size,
        local_steps=local_steps,
        learning_rate=learning_rate,
        start_distance_squared=start_distance_squared,
        last_index=last_index,
        check_step=check_step,
    )
    step = learning_rate * cohort_size * local_steps
    needed = rounds_needed(strong_convexity=strong_convexity, effective_step=step)
    in_range(
        "last_index",
        last_index,
        at_least=needed - 1,
        advice="Before, the constant 9/2 is too small; theorem_corrected holds for any number of rounds.",
    )
    return value


@explained()
def theorem_corrected(
    *,
    smoothness: float,
    strong_convexity: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    local_steps: int,
    learning_rate: float,
    start_distance_squared: float,
    last_index: ArrayLike,
    check_step: bool = True,
) -> Curve:
    """Corrected Theorem 1 with the exact transient: (3μ/2) d0 a/(1−a) and the noise of eq. 40; a = (1 − μλ̃/2)^(𝒥+1).

    Bounds E F(x̄) − F* for the weights of `theorem_weights`, at any number of rounds.
    `check_step` refuses λ̃ > 1/(6L).

    >>> value = theorem_corrected(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...     num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400, start_distance_squared=3,
    ...     last_index=300)
    >>> f"{value:.6g}"
    '0.233872'
    """
    convexity, step = theorem_step(smoothness, strong_convexity, cohort_size, local_steps, learning_rate, check_step)
    noise = theorem_noise(
        smoothness=smoothness,
        gradient_variance=gradient_variance,
        optimum_heterogeneity=optimum_heterogeneity,
        num_clients=num_clients,
        cohort_size=cohort_size,
        local_steps=local_steps,
        learning_rate=learning_rate,
    )
    start = number("start_distance_squared", start_distance_squared, at_least=0)
    left = averaged_remaining(contraction=half_contraction(convexity, step), last_index=last_index)
    return as_curve(1.5 * convexity * start * left + noise)


@explained(
    strong_convexity="μ, 0 < μ ≤ L. May be given, like ‖x_0 − x*‖², so that one run can be passed to every theorem_*; "
    "the noise does not depend on it.",
    start_distance_squared="‖x_0 − x*‖² ≥ 0, squared. May be given; the noise does not depend on it.",
)
def theorem_noise(
    *,
    smoothness: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    local_steps: int,
    learning_rate: float,
    strong_convexity: float | None = None,
    start_distance_squared: float = 0.0,
) -> float:
    """The part of eq. 40 that rounds do not shrink; with C = 1 the drawing of clients adds nothing:

    12λ̃δ²/(JI) + 12λ̃(C−J)ν*²/(J(C−1)) + 18Lλ̃²δ²/(JI) + 18Lλ̃²ν*²/J, λ̃ = λ J I of any size.

    >>> theorem_noise(smoothness=1, gradient_variance=0, optimum_heterogeneity=1, num_clients=2, cohort_size=1,
    ...               local_steps=1, learning_rate=1 / 8)
    1.78125
    """
    largest, _ = curvature(smoothness, smoothness if strong_convexity is None else strong_convexity)
    number("start_distance_squared", start_distance_squared, at_least=0)
    clients, size = cohort(num_clients, cohort_size)
    steps = count("local_steps", local_steps, at_least=1)
    step = number("learning_rate", learning_rate, above=0) * size * steps
    noise = number("gradient_variance", gradient_variance, at_least=0) / (size * steps)
    spread = number("optimum_heterogeneity", optimum_heterogeneity, at_least=0)
    drawing = (clients - size) / (size * (clients - 1)) * spread if clients > 1 else 0.0
    return 12 * step * (noise + drawing) + 18 * largest * step**2 * (noise + spread / size)


@explained(effective_step=LAMBDA_TILDE)
def enough_rounds(*, strong_convexity: float, effective_step: float, last_index: ArrayLike) -> Curve:
    """Is a = (1 − μλ̃/2)^(𝒥+1) ≤ 2/3, which the constant 9/2 needs? The paper does not ask. Boolean, or an array.

    >>> enough_rounds(strong_convexity=1, effective_step=1 / 6, last_index=[0, 10])
    array([False,  True])
    """
    left = remaining(contraction=half_contraction(strong_convexity, effective_step), last_index=last_index)
    return left <= 2 / 3


@explained(effective_step=LAMBDA_TILDE)
def rounds_needed(*, strong_convexity: float, effective_step: float) -> int:
    """The smallest number of rounds 𝒥 + 1 with (1 − μλ̃/2)^(𝒥+1) ≤ 2/3; then the bound may be taken at `last_index` 𝒥.

    >>> rounds_needed(strong_convexity=1, effective_step=1 / 6)
    5
    """
    return int(np.ceil(np.log(1.5) / -np.log1p(-half_contraction(strong_convexity, effective_step))))


def half_contraction(strong_convexity: float, effective_step: float) -> float:
    """μλ̃/2, in (0, 1)."""
    convexity = number("strong_convexity", strong_convexity, above=0)
    share = convexity * number("effective_step", effective_step, above=0) / 2
    return number("strong_convexity * effective step / 2", share, below=1, advice="Take a smaller step.")


def theorem_step(
    smoothness: float,
    strong_convexity: float,
    cohort_size: int,
    local_steps: int,
    learning_rate: float,
    check_step: bool,
) -> tuple[float, float]:
    """μ and λ̃ = λ J I, which is refused above 1/(6L) unless told not to check."""
    largest, convexity = curvature(smoothness, strong_convexity)
    clients = count("cohort_size", cohort_size, at_least=1)
    steps = count("local_steps", local_steps, at_least=1)
    step, limit = number("learning_rate", learning_rate, above=0) * clients * steps, 1 / (6 * largest)
    if check_step and step > limit * (1 + 1e-12):
        raise ConfigError(
            f"The effective step λ̃ is {step:.6g}, but the theorem asks for at most 1/(6 L) = {limit:.6g}. "
            f"Divide learning_rate by {step / limit:.4g}, or look at the formula alone with check_step=False."
        )
    return convexity, step
