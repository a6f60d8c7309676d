"""P: any run that adds stale deltas, x_{t+1} = x_t + η (G_c(x_{t−τ_t}) − x_{t−τ_t}), never leaves this ball.

No probability is involved: it holds for any order of clients and any staleness ≤ τ, also for a mean of J such deltas.
G_c: I local gradient steps of client c. Not in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, count, curvature, in_range, number, whole
from asyncfed.theory.bounds.delayed_sequence import delayed_sequence_rate
from asyncfed.theory.bounds.local_maps import LocalMap, largest_path_learning_rate, local_map
from asyncfed.theory.bounds.windows import merges, window_maximum

P_STEP = "η, 0 < η ≤ 1. The server moves by η times a delta, or times the mean of J of them."


class DeltaPath(NamedTuple):
    """What P promises: ‖x_t − x*‖ ≤ rate^t ‖x_0 − x*‖ + floor."""

    rate: float
    floor: float


@explain_arguments(server_step=P_STEP)
def delta_condition(*, gain: float, stretch: float, staleness: int, server_step: float = 1.0) -> float:
    """η K² τ / s: P holds below 1.

    >>> delta_condition(gain=0.5, stretch=0.5, staleness=1)
    0.5
    """
    step = number("server_step", server_step, above=0, at_most=1, advice="P is proved for no other.")
    own = number("gain", gain, above=0, at_most=1)
    return step * number("stretch", stretch, above=0) ** 2 * count("staleness", staleness) / own


@explain_arguments(server_step=P_STEP)
def delta_path(
    *, gain: float, stretch: float, fixed_point_gap: float, staleness: int, server_step: float = 1.0
) -> DeltaPath:
    """ρ = (1 − ηs + η²K²τ)^(1/(1+2τ)) and the floor b(1 + ηKτ)/(s − ηK²τ), if η K² τ < s.

    `p_constants` does it from L, μ, λ and I.

    >>> of_client = local_map(smoothness=4, strong_convexity=.5, learning_rate=.002, local_steps=5)
    >>> path = delta_path(gain=of_client.gain, stretch=of_client.stretch, fixed_point_gap=.3 * of_client.gain / .5,
    ...                   staleness=2)
    >>> f"{path.rate:.6g} {path.floor:.6g}"
    '0.999639 1.79336'
    """
    ratio = delta_condition(gain=gain, stretch=stretch, staleness=staleness, server_step=server_step)
    if ratio >= 1:
        raise ConfigError(
            f"P needs η K² τ / s below 1 but it is {ratio:.6g} (τ {staleness}, K {stretch:.6g}, s {gain:.6g}). "
            "Take a smaller learning_rate or server_step; largest_delta_learning_rate says how small."
        )
    gap = number("fixed_point_gap", fixed_point_gap, at_least=0)
    rate = delayed_sequence_rate(
        own_weight=1 - server_step * gain, delayed_weight=server_step * gain * ratio, window=2 * staleness
    )
    return DeltaPath(rate, gap * (1 + server_step * stretch * staleness) / (gain * (1 - ratio)))


@explain_arguments(server_step=P_STEP)
def delta_path_bound(
    *,
    gain: float,
    stretch: float,
    fixed_point_gap: float,
    staleness: int,
    start_distance: float,
    num_updates: ArrayLike,
    server_step: float = 1.0,
) -> Curve:
    """P: ‖x_t − x*‖ ≤ ρ^t ‖x_0 − x*‖ + b(1 + ηKτ)/(s − ηK²τ), if η K² τ < s. `p_bound` does it from L, μ, λ and I.

    From V_{t+1} ≤ (1−ηs) V_t + η b + η K ‖x_t − x_{t−τ}‖ and ‖x_t − x_{t−τ}‖ ≤ η τ (K max_{[t−2τ, t]} V + b).

    >>> of_client = local_map(smoothness=4, strong_convexity=.5, learning_rate=.002, local_steps=5)
    >>> value = delta_path_bound(gain=of_client.gain, stretch=of_client.stretch, staleness=2, start_distance=2,
    ...                          fixed_point_gap=.3 * of_client.gain / .5, num_updates=1500)
    >>> f"{value:.6g}"
    '2.95732'
    """
    path = delta_path(
        gain=gain, stretch=stretch, fixed_point_gap=fixed_point_gap, staleness=staleness, server_step=server_step
    )
    start = number("start_distance", start_distance, at_least=0)
    return np.power(path.rate, whole("num_updates", num_updates)) * start + path.floor


@explain_arguments(server_step=P_STEP)
def largest_delta_learning_rate(
    *,
    smoothness: float,
    strong_convexity: float,
    local_steps: int,
    staleness: int,
    server_step: float = 1.0,
    shape: ArrayLike = 1.0,
) -> float:
    """The λ below which P holds: every smaller λ has η K² τ < s and λ shape_i ≤ 2/(L + μ). With τ = 0 itself allowed.

    >>> f"{largest_delta_learning_rate(smoothness=12.0639, strong_convexity=.885293, local_steps=350, staleness=5):.3e}"
    '3.478e-06'
    """
    largest, smallest = curvature(smoothness, strong_convexity)
    shapes = np.asarray(in_range("shape", shape, above=0))
    top = largest_path_learning_rate(smoothness=largest, strong_convexity=smallest) / float(shapes.max())

    def of_rate(rate: float) -> LocalMap:
        return local_map(
            smoothness=largest, strong_convexity=smallest, learning_rate=rate * shapes, local_steps=local_steps
        )

    delay, step = count("staleness", staleness), number("server_step", server_step, above=0, at_most=1)
    if delay == 0:
        return top
    # While K = L s/μ the condition reads s < μ²/(η L² τ); where K turns into 1 + q, at s = 2μ/(L+μ), it only weakens.
    enough = smallest**2 / (step * largest**2 * delay)
    if enough >= min(2 * smallest / (largest + smallest), of_rate(top).gain):
        return top
    return float(brentq(lambda rate: of_rate(rate).gain - enough, top * 1e-12, top, xtol=1e-300, rtol=1e-14))


def delta_path_recursion(
    *,
    gain: ArrayLike,
    stretch: ArrayLike,
    fixed_point_gap: ArrayLike,
    staleness: ArrayLike,
    start_distance: float,
    num_updates: int,
    server_step: ArrayLike = 1.0,
) -> NDArray[np.float64]:
    """P for steps that change: bounds V_0 … V_n of ‖x_t − x*‖, t = 0 … n = `num_updates`, whatever the steps.

    V_{t+1} = (1 − η_t s_t) V_t + η_t b_t + η_t K_t Σ_{u=t−τ_t}^{t−1} M_u, with
    M_u = η_u (K_u max_{[u−τ_u, u]} V + b_u) ≥ ‖x_{u+1} − x_u‖: a delta is at most K_u V + b_u long.

    Each of `gain` s_t, `stretch` K_t, `fixed_point_gap` b_t, `staleness` τ_t and `server_step` η_t is what merge t
    used: one number, n numbers, or (n, J) numbers for a mean of J deltas. A delta's s, K, b are those of the rates it
    was made with, at its dispatch, not of the rates in force when it is merged. The staleness may be an upper bound.

    >>> delta_path_recursion(gain=.5, stretch=.5, fixed_point_gap=0, staleness=[0, 1], start_distance=1, num_updates=2)
    array([1. , 0.5, 0.5])

    Returns:
        The values of the formula, one for each index.
    """
    runs = count("num_updates", num_updates)
    own = merges("gain", gain, runs, at_least=0, at_most=1)
    pull = merges("stretch", stretch, runs, at_least=0)
    gap = merges("fixed_point_gap", fixed_point_gap, runs, at_least=0)
    late = merges("staleness", whole("staleness", staleness), runs).astype(int)
    step = merges("server_step", server_step, runs, at_least=0, at_most=1)
    bound, moved = np.empty(runs + 1), np.zeros(runs + 1)
    bound[0] = number("start_distance", start_distance, at_least=0)
    for t in range(runs):
        oldest = np.maximum(t - late[t], 0)
        drift = moved[t] - moved[oldest]
        shrunk = (1 - step[t] * own[t]) * bound[t]
        bound[t + 1] = np.mean(shrunk + step[t] * (gap[t] + pull[t] * drift))
        move = np.mean(step[t] * (pull[t] * window_maximum(bound, oldest, t) + gap[t]))
        moved[t + 1] = moved[t] + move
    return bound
