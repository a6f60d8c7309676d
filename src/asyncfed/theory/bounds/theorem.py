"""Theorem 1: as printed, as its proof ends (eq. 40), and corrected. Without staleness; none of them knows τ_max.

Assumptions of the corrected one: no staleness; the J clients are a uniform subset, independent of the model; the deltas
are added (or each client starts from the one before it); every client L-smooth and μ-strongly convex; Assumption 2 with
δ²; constant step λ̃ = λ J I ≤ 1/(6L). For servers that average, and for τ > 0, use R* instead.

All bound E F(x̄) − F*, an objective gap, for the weighted average x̄ of the 𝒥 + 1 models x_0 … x_𝒥; 𝒥 is `last_index`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import MEANINGS, explain_arguments
from asyncfed.theory.bounds.arguments import Curve, as_curve, in_range, number, whole
from asyncfed.theory.bounds.settings import TheoremSetting
from asyncfed.theory.bounds.transient import averaged_remaining, growing_weights, remaining

LAMBDA_TILDE = "λ̃ > 0, that is λ J I (the statement prints λ C I), with μλ̃ < 2."
ONE_HORIZON = "𝒥 ≥ 0. One weight for each of the 𝒥 + 1 models x_0 … x_𝒥."


@explain_arguments(effective_step=LAMBDA_TILDE, last_index=ONE_HORIZON)
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


@explain_arguments(effective_step=LAMBDA_TILDE, last_index=ONE_HORIZON)
def theorem_weights(*, strong_convexity: float, effective_step: float, last_index: int) -> NDArray[np.float64]:
    """Corrected: π_j = (1 − μλ̃/2)^−(j+1), j = 0 … 𝒥, scaled to sum to 1.

    >>> theorem_weights(strong_convexity=1, effective_step=1, last_index=1)
    array([0.33333333, 0.66666667])
    """
    return growing_weights(contraction=half_contraction(strong_convexity, effective_step), last_index=last_index)


@explain_arguments(
    num_clients="C ≥ 1, all clients; as printed, it is C that takes the place of J.",
    cohort_size="J, 1 ≤ J ≤ C; as printed, it does not matter.",
)
def theorem_as_printed(setting: TheoremSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """Theorem 1 as printed, λ̃ = λ C I: (9/2) μ d0 e^(−μλ̃𝒥/2) + 12λ̃δ²/(CI) + 18Lλ̃²δ²/(CI) + 18Lλ̃²ν*²/C.

    Not a valid bound for J < C, for short runs, with the printed weights, or with staleness (see counter_examples).
    `check_step` refuses λ̃ > 1/(6L).

    >>> run = TheoremSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                      num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 4800,
    ...                      start_distance_squared=3)
    >>> f"{theorem_as_printed(run, last_index=300):.6g}"
    '0.321574'
    """
    return theorem_of_proof(
        replace(setting, cohort_size=setting.num_clients), last_index=last_index, check_step=check_step
    )


@explain_arguments()
def theorem_of_proof(setting: TheoremSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """Eq. 40, where the proof ends (with 𝒥 for its misprinted J in the exponent), λ̃ = λ J I, at any number of rounds:

    (9/2) μ d0 e^(−μλ̃𝒥/2) + 12λ̃δ²/(JI) + 12λ̃(C−J)ν*²/(J(C−1)) + 18Lλ̃²δ²/(JI) + 18Lλ̃²ν*²/J.

    Valid where `enough_rounds` says so. `check_step` refuses λ̃ > 1/(6L).

    >>> run = TheoremSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                      num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400,
    ...                      start_distance_squared=3)
    >>> f"{theorem_of_proof(run, last_index=300):.6g}"
    '0.429908'
    """
    convexity, step = setting.strong_convexity, theorem_step(setting, check_step)
    decay = np.exp(-convexity * step * whole("last_index", last_index) / 2)
    return as_curve(4.5 * convexity * setting.start_distance_squared * decay + theorem_noise(setting))


@explain_arguments(last_index=f"{MEANINGS['last_index']} At least `rounds_needed` − 1.")
def theorem_exponential(setting: TheoremSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """Corrected Theorem 1 with the exponential transient: eq. 40, refused while (1 − μλ̃/2)^(𝒥+1) > 2/3.

    `check_step` refuses λ̃ > 1/(6L).

    >>> run = TheoremSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                      num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400,
    ...                      start_distance_squared=3)
    >>> f"{theorem_exponential(run, last_index=300):.6g}"
    '0.429908'
    """
    value = theorem_of_proof(setting, last_index=last_index, check_step=check_step)
    needed = rounds_needed(strong_convexity=setting.strong_convexity, effective_step=setting.effective_step)
    in_range(
        "last_index",
        last_index,
        at_least=needed - 1,
        advice="Before, the constant 9/2 is too small; theorem_corrected holds for any number of rounds.",
    )
    return value


@explain_arguments()
def theorem_corrected(setting: TheoremSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """Corrected Theorem 1 with the exact transient: (3μ/2) d0 a/(1−a) and the noise of eq. 40; a = (1 − μλ̃/2)^(𝒥+1).

    Bounds E F(x̄) − F* for the weights of `theorem_weights`, at any number of rounds.
    `check_step` refuses λ̃ > 1/(6L).

    >>> run = TheoremSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                      num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400,
    ...                      start_distance_squared=3)
    >>> f"{theorem_corrected(run, last_index=300):.6g}"
    '0.233872'
    """
    convexity, step = setting.strong_convexity, theorem_step(setting, check_step)
    left = averaged_remaining(contraction=half_contraction(convexity, step), last_index=last_index)
    return as_curve(1.5 * convexity * setting.start_distance_squared * left + theorem_noise(setting))


@explain_arguments()
def theorem_noise(setting: TheoremSetting) -> float:
    """The part of eq. 40 that rounds do not shrink; with C = 1 the drawing of clients adds nothing:

    12λ̃δ²/(JI) + 12λ̃(C−J)ν*²/(J(C−1)) + 18Lλ̃²δ²/(JI) + 18Lλ̃²ν*²/J, λ̃ = λ J I of any size. It depends neither on μ
    nor on the start.

    >>> theorem_noise(TheoremSetting(smoothness=1, strong_convexity=1, gradient_variance=0, optimum_heterogeneity=1,
    ...                              num_clients=2, cohort_size=1, local_steps=1, learning_rate=1 / 8,
    ...                              start_distance_squared=0))
    1.78125
    """
    clients, size, spread = setting.num_clients, setting.cohort_size, setting.optimum_heterogeneity
    step, noise = setting.effective_step, setting.gradient_variance / (size * setting.local_steps)
    drawing = (clients - size) / (size * (clients - 1)) * spread if clients > 1 else 0.0
    return 12 * step * (noise + drawing) + 18 * setting.smoothness * step**2 * (noise + spread / size)


@explain_arguments(effective_step=LAMBDA_TILDE)
def enough_rounds(*, strong_convexity: float, effective_step: float, last_index: ArrayLike) -> Curve:
    """Is a = (1 − μλ̃/2)^(𝒥+1) ≤ 2/3, which the constant 9/2 needs? The paper does not require it. Boolean, or an array.

    >>> enough_rounds(strong_convexity=1, effective_step=1 / 6, last_index=[0, 10])
    array([False,  True])
    """
    left = remaining(contraction=half_contraction(strong_convexity, effective_step), last_index=last_index)
    return left <= 2 / 3


@explain_arguments(effective_step=LAMBDA_TILDE)
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


def theorem_step(setting: TheoremSetting, check_step: bool) -> float:
    """λ̃ = λ J I, which is refused above 1/(6L) if `check_step`."""
    step, limit = setting.effective_step, 1 / (6 * setting.smoothness)
    if check_step and step > limit * (1 + 1e-12):
        raise ConfigError(
            f"The effective step λ̃ is {step:.6g}, but the theorem needs at most 1/(6 L) = {limit:.6g}. "
            f"Divide learning_rate by {step / limit:.4g}, or evaluate the formula alone with check_step=False."
        )
    return step
