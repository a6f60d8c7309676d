"""The smallest examples in which a statement of the paper fails, each measured exactly beside the printed bound.

Where `measured` exceeds `printed` of a `CounterExample` the printed statement is false; `corrected` is what the
corrected statement allows, None where only another algorithm or step would help. Nothing here is random: expectations
are computed, not sampled.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from asyncfed.theory.bounds.arguments import count, number
from asyncfed.theory.bounds.recursion import client_drift_bound, round_recursion
from asyncfed.theory.bounds.settings import StaleSetting, TheoremSetting
from asyncfed.theory.bounds.stale_rounds import r_star_averaged
from asyncfed.theory.bounds.stale_steps import largest_effective_step
from asyncfed.theory.bounds.theorem import (
    theorem_as_printed,
    theorem_corrected,
    theorem_of_proof,
    theorem_weights,
    theorem_weights_as_printed,
)
from asyncfed.theory.bounds.tuning import (
    decayed_rates,
    tuning_any_rates,
    tuning_as_printed,
    tuning_weights_as_printed,
)

LARGEST_STEP = 1 / 6
"""1/(6L) of F = x²/2, the largest step the paper allows there."""


@dataclass(frozen=True)
class CounterExample:
    """What happens, what the paper's statement allows, and what the corrected one allows.

    Attributes:
        measured: what happens.
        printed: what the paper's statement allows.
        corrected: what the corrected statement allows; None where only another algorithm or step would help.
        remeasured: what happens to the average that the corrected statement is about, where that is another average.
    """

    measured: float
    printed: float
    corrected: float | None = None
    remeasured: float | None = None

    @property
    def refutes(self) -> bool:
        """Does what happens exceed what was printed?"""
        return self.measured > self.printed


def delayed_descent(*, step: float, staleness: int, num_updates: int) -> NDArray[np.float64]:
    """x_0 … x_n of x_{t+1} = x_t − step·x_{max(0, t−τ)}, x_0 = 1: identical clients F = x²/2, constant staleness.

    At the paper's largest step 1/6 this diverges for τ ≥ 9.

    >>> delayed_descent(step=1 / 6, staleness=5, num_updates=8)[7:].round(6).tolist()
    [-0.138889, -0.25]
    """
    updates, delay, factor = count("num_updates", num_updates), count("staleness", staleness), number("step", step)
    path = np.ones(updates + 1)
    for t in range(updates):
        path[t + 1] = path[t] - factor * path[max(0, t - delay)]
    return path


def recursion_with_staleness() -> CounterExample:
    """Lemma 5: F = x²/2, I = 1, Jλ = 1/6, staleness 5. x_6 = 0, so the right-hand side is 0, but x_7 = −5/36.

    As printed the drift is measured from the stale model, where it is 0 for I = 1; corrected, from x_6.

    >>> recursion_with_staleness().refutes
    True
    """
    path = delayed_descent(step=LARGEST_STEP, staleness=5, num_updates=7)
    now, later, stale = float(path[6]), float(path[7]), float(path[1])

    def right_side(drift: float) -> float:
        value = round_recursion(
            smoothness=1,
            strong_convexity=1,
            gradient_variance=0,
            optimum_heterogeneity=0,
            num_clients=1,
            cohort_size=1,
            local_steps=1,
            learning_rate=LARGEST_STEP,
            distance_squared=now**2,
            objective_gap=now**2 / 2,
            client_drift=drift,
        )
        return float(value)

    return CounterExample(later**2, right_side(0.0), right_side((stale - now) ** 2))


def drift_with_staleness() -> CounterExample:
    """Lemma 6: the same run. At x_6 the server is at the optimum and the bound is 0, but the client works at x_1.

    >>> drift_with_staleness().refutes
    True
    """
    path = delayed_descent(step=LARGEST_STEP, staleness=5, num_updates=6)
    printed = client_drift_bound(
        smoothness=1,
        gradient_variance=0,
        optimum_heterogeneity=0,
        cohort_size=1,
        local_steps=1,
        learning_rate=LARGEST_STEP,
        objective_gap=float(path[6]) ** 2 / 2,
    )
    return CounterExample(float(path[1] - path[6]) ** 2, float(printed))


def tuning_lemma(
    *, contraction: float, gain: float, noise: float, base_rate: float, start: float, last_index: int
) -> CounterExample:
    """Lemma 7: the largest Ψ_T that sequences with d_{t+1} = (1−zγ_t) d_t − vγ_t g_t + lγ_t² ≥ 0 can reach.

    Taking a unit of distance out in round t pays u_t = π_t P_{t+1}/(vγ_t), P_{t+1} = Π_{s≤t} (1−zγ_s), measured in
    units of round 0. The start is best taken where u_t is largest, the noise of round s where it is largest from s on.
    γ_t = γ_0/√(t+1), weights π_t as printed; `corrected` holds for its own, corrected, weights. Keywords as in
    `tuning_as_printed`: `gain` is v, `start` is d_0. Ψ_T averages g_0 … g_T, T = `last_index`.

    >>> example = tuning_lemma(contraction=1, gain=1, noise=0, base_rate=.5, start=1, last_index=0)
    >>> example.measured, example.printed
    (1.0, 0.125)
    """
    printed = tuning_as_printed(contraction=contraction, gain=gain, noise=noise, base_rate=base_rate, start=start)
    rates = decayed_rates(base_rate=base_rate, last_index=last_index)
    weights = tuning_weights_as_printed(rates=rates, contraction=contraction)
    log_left = np.cumsum(np.log1p(-contraction * rates))
    with np.errstate(divide="ignore"):
        log_pay = np.log(weights) + log_left - np.log(gain * rates)
    best_from = np.maximum.accumulate(log_pay[::-1])[::-1]
    reached = start * np.exp(best_from[0]) + noise * np.sum(rates**2 * np.exp(best_from - log_left))
    corrected = tuning_any_rates(contraction=contraction, gain=gain, noise=noise, rates=rates, start=start)[-1]
    return CounterExample(float(reached), printed, float(corrected))


def theorem_weights_fail(last_index: int) -> CounterExample:
    """Theorem 1's printed weights favour the start: F = x²/2, no staleness, λ̃ = 1/6; false from 𝒥 = 52 on.

    Args:
        last_index: 𝒥 ≥ 0: the average of x_0 … x_𝒥.

    >>> [theorem_weights_fail(last).refutes for last in (51, 52)]
    [False, True]
    """
    path = delayed_descent(step=LARGEST_STEP, staleness=0, num_updates=count("last_index", last_index))
    right = theorem_weights(strong_convexity=1, effective_step=LARGEST_STEP, last_index=last_index)
    wrong = theorem_weights_as_printed(strong_convexity=1, effective_step=LARGEST_STEP, last_index=last_index)
    return CounterExample(
        measured=float(wrong @ path) ** 2 / 2,
        printed=theorem_of_proof(one_quadratic(), last_index=last_index),
        corrected=theorem_corrected(one_quadratic(), last_index=last_index),
        remeasured=float(right @ path) ** 2 / 2,
    )


def theorem_short_run(last_index: int) -> CounterExample:
    """Theorem 1 requires no minimum of rounds: H = diag(1, 0.01), x_0 = e_1, λ̃ = 1/6, corrected weights.

    Args:
        last_index: 𝒥 ≥ 0: the average of x_0 … x_𝒥.

    >>> [theorem_short_run(last).refutes for last in (0, 10)]
    [True, True]
    """
    run = one_quadratic(strong_convexity=0.01)
    path = delayed_descent(step=LARGEST_STEP, staleness=0, num_updates=count("last_index", last_index))
    weights = theorem_weights(strong_convexity=0.01, effective_step=LARGEST_STEP, last_index=last_index)
    printed, corrected = theorem_of_proof(run, last_index=last_index), theorem_corrected(run, last_index=last_index)
    return CounterExample(float(weights @ path) ** 2 / 2, printed, corrected)


def theorem_with_staleness(*, staleness: int, last_index: int) -> CounterExample:
    """Theorem 1, even with corrected weights, under constant staleness τ: F = x²/2, λ̃ = 1/6.

    First false at 𝒥 = 1405 for τ = 6, 99 for τ = 7, 56 for τ = 8; for τ ≥ 9 the run diverges.

    >>> [theorem_with_staleness(staleness=8, last_index=last).refutes for last in (55, 56)]
    [False, True]
    """
    path = delayed_descent(step=LARGEST_STEP, staleness=staleness, num_updates=count("last_index", last_index))
    weights = theorem_weights(strong_convexity=1, effective_step=LARGEST_STEP, last_index=last_index)
    return CounterExample(float(weights @ path) ** 2 / 2, theorem_of_proof(one_quadratic(), last_index=last_index))


def staleness_within_r_star(*, staleness: int, last_index: int) -> CounterExample:
    """The same problem at the step R* allows, γ = 1/(8 L m): `corrected` is R*, and `measured` stays below it.

    `printed` is Theorem 1 at that step.

    >>> example = staleness_within_r_star(staleness=9, last_index=500)
    >>> example.measured <= example.corrected
    True
    """
    step = largest_effective_step(smoothness=1, staleness=staleness)
    path = delayed_descent(step=step, staleness=staleness, num_updates=count("last_index", last_index))
    weights = theorem_weights(strong_convexity=1, effective_step=step, last_index=last_index)
    run = one_quadratic(learning_rate=step)
    return CounterExample(
        float(weights @ path) ** 2 / 2,
        theorem_of_proof(run, last_index=last_index),
        r_star_averaged(StaleSetting(**asdict(run), staleness=staleness), last_index=last_index),
    )


def dropped_sampling_term(
    *, learning_rate: float = 1 / 500, last_index: int = 20_000, all_clients: bool = True
) -> CounterExample:
    """Theorem 1's statement leaves out the term of drawing J < C clients: F_1, F_2 = ½(x∓1)², C = 2, J = I = 1.

    x_0 = 0, x_{t+1} = (1−λ) x_t ± λ; E x̄² is exact: λ² Σ_s (Σ_{t>s} π_t (1−λ)^(t−s−1))². λ̃ = λCI as the statement
    says, or λJI with `all_clients=False`. `corrected` holds for λ̃ = λJI. x̄ averages x_0 … x_T, T = `last_index`.

    Args:
        learning_rate: λ, 0 < λ ≤ 1/12.
        last_index: T ≥ 0, whole.
        all_clients: whether λ̃ = λ C I, as the statement says, or λ J I.

    >>> example = dropped_sampling_term()
    >>> f"{example.measured:.3g} > {example.printed:.3g}"
    '0.00025 > 0.000144'
    """
    rate = number("learning_rate", learning_rate, above=0)
    step = 2 * rate if all_clients else rate
    weights = theorem_weights(strong_convexity=1, effective_step=step, last_index=last_index)
    carried, squares = 0.0, 0.0
    for weight in weights[:0:-1]:
        carried = float(weight) + (1 - rate) * carried
        squares += carried**2
    run = one_quadratic(learning_rate=rate, num_clients=2, optimum_heterogeneity=1.0, start_distance_squared=0.0)
    printed = theorem_as_printed(replace(run, learning_rate=step / 2), last_index=last_index)
    return CounterExample(rate**2 * squares / 2, printed, theorem_corrected(run, last_index=last_index))


def client_bias(*, learning_rate: float, num_updates: int) -> CounterExample:
    """Merging on arrival favours fast clients, of which the paper says nothing: F_1, F_2 = ½(x∓1)², x_0 = 0.

    Client 1 is three times as fast, so three of four merges are its own: E x_t → 1/2 and F(E x_t) − F* → 1/8 for every
    λ, while the theorem's bound vanishes with λ. 0 < λ ≤ 1/6; x_t is the model after t = `num_updates` merges.

    >>> client_bias(learning_rate=1e-3, num_updates=10_000).refutes
    True
    """
    rate = number("learning_rate", learning_rate, above=0, at_most=LARGEST_STEP)
    expected = (3 / 4 - 1 / 4) * -np.expm1(count("num_updates", num_updates) * np.log1p(-rate))
    run = one_quadratic(
        learning_rate=learning_rate, num_clients=2, optimum_heterogeneity=1.0, start_distance_squared=0.0
    )
    return CounterExample(float(expected) ** 2 / 2, theorem_of_proof(run, last_index=num_updates))


def one_quadratic(
    *,
    strong_convexity: float = 1.0,
    learning_rate: float = LARGEST_STEP,
    num_clients: int = 1,
    optimum_heterogeneity: float = 0.0,
    start_distance_squared: float = 1.0,
) -> TheoremSetting:
    """L = 1, one client and one local step a round, full gradients."""
    return TheoremSetting(
        smoothness=1.0,
        strong_convexity=strong_convexity,
        gradient_variance=0.0,
        optimum_heterogeneity=optimum_heterogeneity,
        num_clients=num_clients,
        cohort_size=1,
        local_steps=1,
        learning_rate=learning_rate,
        start_distance_squared=start_distance_squared,
    )
