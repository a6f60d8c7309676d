"""Lemma 7, the tuning lemma: d_{t+1} ≤ (1 − zγ_t) d_t − v γ_t g_t + l γ_t² bounds a weighted average of the g_t.

In the proof of Theorem 1 d_t = E‖x_t − x*‖², a squared distance, g_t = E F(x_t) − F*, z = μ/2 and v = 1/3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, as_curve, as_numbers, count, in_range, number, whole
from asyncfed.theory.bounds.transient import averaged_remaining

FACTOR = "v > 0, the factor of γ_t g_t (not the s of P and M)."
AVERAGE = "T ≥ 0. Bounds the average Ψ_T of the T + 1 numbers g_0 … g_T. A number, or an array for a curve."


@explain_arguments(last_index="T ≥ 0. Gives the T + 1 rates γ_0 … γ_T.")
def decayed_rates(
    *, base_rate: float, last_index: int, delay_penalty: float = 0.0, delays: ArrayLike = 0.0
) -> NDArray[np.float64]:
    """γ_t = γ_0 / (√(t+1) (1 + α τ_t)), t = 0 … T (Lemma 7).

    >>> decayed_rates(base_rate=1.0, last_index=3)[[0, 3]]
    array([1. , 0.5])
    """
    last = count("last_index", last_index)
    delay = np.asarray(in_range("delays", delays, at_least=0))
    if delay.ndim and delay.shape != (last + 1,):
        raise ConfigError(f"delays has shape {delay.shape}, but there are {last + 1} rates. Give one, or one each.")
    slowed = 1 + number("delay_penalty", delay_penalty, at_least=0, at_most=1) * delay
    return number("base_rate", base_rate, above=0) / (np.sqrt(np.arange(1, last + 2)) * slowed)


@explain_arguments()
def tuning_weights_as_printed(*, rates: ArrayLike, contraction: float) -> NDArray[np.float64]:
    """π_t = (1 − zγ_t)^(t+1), scaled to sum to 1 (Lemma 7 as printed; the exponent's sign is wrong).

    >>> tuning_weights_as_printed(rates=[0.5, 0.5], contraction=1)
    array([0.66666667, 0.33333333])
    """
    shrink = shrinking(rates, contraction)
    weights = (1 - shrink) ** np.arange(1, len(shrink) + 1)
    return weights / float(weights.sum())


@explain_arguments()
def tuning_weights(*, rates: ArrayLike, contraction: float) -> NDArray[np.float64]:
    """Corrected: w_t = γ_t / Π_{s≤t} (1 − zγ_s), scaled to sum to 1.

    >>> tuning_weights(rates=[0.5, 0.5], contraction=1)
    array([0.33333333, 0.66666667])
    """
    shrink = shrinking(rates, contraction)
    logs = np.log(shrink) - np.cumsum(np.log1p(-shrink))
    weights: NDArray[np.float64] = np.exp(logs - logs.max())
    return weights / float(weights.sum())


def weighted_average(values: ArrayLike, weights: ArrayLike) -> float:
    """Ψ_T = Σ g_t π_t / Σ π_t. As many weights ≥ 0 as values, not all of them 0.

    >>> weighted_average([1.0, 4.0], [2.0, 1.0])
    2.0

    Returns:
        The value of the formula.
    """
    numbers, shares = as_numbers("values", values), np.asarray(in_range("weights", weights, at_least=0))
    if numbers.ndim != 1 or numbers.shape != shares.shape or not shares.any():
        raise ConfigError(
            f"values has shape {numbers.shape} and weights {shares.shape}, summing to {shares.sum():g}. "
            "Give a list of values and as long a list of weights, not all of them 0."
        )
    return float(np.average(numbers, weights=shares))


@explain_arguments(gain=FACTOR, first_delay_factor="1 + ατ_0 ≥ 1, by which the first rate is divided, in π_0 only.")
def tuning_as_printed(
    *, contraction: float, gain: float, noise: float, base_rate: float, start: float, first_delay_factor: float = 1.0
) -> float:
    """Ψ_T ≤ z²γ_0π_0d_0/(2v) + zγ_0²l/2 with π_0 = 1 − zγ_0 (Lemma 7 as printed). False: see counter_examples.

    The same for every T.

    >>> f"{tuning_as_printed(contraction=.25, gain=1 / 3, noise=2, base_rate=.04, start=3):.6g}"
    '0.0115375'
    """
    shrink = number("contraction", contraction, above=0)
    rate = number("base_rate", base_rate, above=0)
    number("contraction * base_rate", shrink * rate, below=1, advice="Take a smaller base_rate.")
    weight = 1 - shrink * rate / number("first_delay_factor", first_delay_factor, at_least=1)
    left = shrink**2 * rate * weight * number("start", start, at_least=0) / (2 * number("gain", gain, above=0))
    return left + shrink * rate**2 * number("noise", noise, at_least=0) / 2


@explain_arguments(gain=FACTOR, last_index=AVERAGE)
def tuning_constant(
    *, contraction: float, gain: float, noise: float, rate: float, start: float, last_index: ArrayLike
) -> Curve:
    """Corrected, constant γ: Ψ_T ≤ (z/v) d_0 / ((1 − zγ)^−(T+1) − 1) + lγ/v, for the weights of `tuning_weights`.

    >>> f"{tuning_constant(contraction=.25, gain=1 / 3, noise=2, rate=.04, start=3, last_index=500):.6g}"
    '0.254732'
    """
    shrink, rate = number("contraction", contraction, above=0), number("rate", rate, above=0)
    profit = number("gain", gain, above=0)
    left = averaged_remaining(
        contraction=shrink * rate,
        last_index=last_index,
        called="contraction * rate",
        advice="Take a smaller rate.",
    )
    floor = number("noise", noise, at_least=0) * rate
    return as_curve((shrink * number("start", start, at_least=0) * left + floor) / profit)


@explain_arguments(gain=FACTOR)
def tuning_any_rates(
    *, contraction: float, gain: float, noise: float, rates: ArrayLike, start: float
) -> NDArray[np.float64]:
    """Corrected, any rates γ_0 … γ_n: an array of n + 1 bounds, on Ψ_T for every T = 0 … n; the last is for all rates.

    Ψ_T ≤ (z/v) d_0 P/(1−P) + (l/v) Σ w_t γ_t / Σ w_t,  P = Π_{s≤T} (1 − zγ_s), for the weights of `tuning_weights` up
    to T. Tight.

    >>> schedule = decayed_rates(base_rate=.04, delay_penalty=.01, delays=2, last_index=500)
    >>> f"{tuning_any_rates(contraction=.25, gain=1 / 3, noise=2, rates=schedule, start=3)[-1]:.6g}"
    '4.28052'
    """
    shrink = shrinking(rates, contraction)
    steps = np.atleast_1d(as_numbers("rates", rates))
    profit = number("gain", gain, above=0)
    log_left = np.cumsum(np.log1p(-shrink))
    with np.errstate(over="ignore"):
        left = 1 / np.expm1(-log_left)
    # Σ_{t≤T} w_t γ_t / Σ_{t≤T} w_t, by the recursion of a running mean: the weights themselves overflow.
    mean_rate = np.empty_like(steps)
    for t, share in enumerate(shrink / -np.expm1(log_left)):
        mean_rate[t] = steps[t] if t == 0 else mean_rate[t - 1] + share * (steps[t] - mean_rate[t - 1])
    floor = number("noise", noise, at_least=0) * mean_rate
    bounds: NDArray[np.float64] = (contraction * number("start", start, at_least=0) * left + floor) / profit
    return bounds


@explain_arguments(
    last_index="T ≥ 0. Bounds the product over the T + 1 rounds 0 … T. A number, or an array for a curve."
)
def decayed_transient_bound(
    *,
    contraction: float,
    base_rate: float,
    last_index: ArrayLike,
    delay_penalty: float = 0.0,
    largest_delay: float = 0.0,
) -> Curve:
    """Π_{s≤T} (1 − zγ_s) ≤ exp(−2 z γ_0 (√(T+2) − 1)/(1 + α τ_max)): with decayed rates the start fades like e^(−c√T).

    >>> decayed_transient_bound(contraction=1, base_rate=0.5, last_index=2)
    0.36787944117144233
    """
    slowed = 1 + number("delay_penalty", delay_penalty, at_least=0, at_most=1) * number(
        "largest_delay", largest_delay, at_least=0
    )
    pace = number("contraction", contraction, above=0) * number("base_rate", base_rate, above=0) / slowed
    return as_curve(np.exp(-2 * pace * (np.sqrt(np.asarray(whole("last_index", last_index)) + 2) - 1)))


def shrinking(rates: ArrayLike, contraction: float) -> NDArray[np.float64]:
    """zγ_t, each in (0, 1), at least one of them."""
    steps = np.atleast_1d(in_range("rates", rates, above=0)) * number("contraction", contraction, above=0)
    if steps.ndim != 1 or len(steps) == 0:
        raise ConfigError(f"rates has shape {steps.shape}, but must be a list of numbers, at least one.")
    return np.asarray(in_range("contraction * rates", steps, below=1, advice="Take smaller rates."))
