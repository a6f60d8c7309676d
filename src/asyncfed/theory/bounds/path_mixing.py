"""M: any run that mixes received models in, x_{t+1} = (1−α) x_t + α G_c(x_{t−τ_t}), never leaves this ball.

α = 1 replaces the server's model (the paper's literal "average the received parameters" with one client), α = 1/2 is
what its published scripts do at the server. No probability and no condition on the staleness; true for any order of
clients and also for a mean of J such models. Not in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, count, number, whole
from asyncfed.theory.bounds.windows import merges, window_maximum


class MixingPath(NamedTuple):
    """What M promises: ‖x_t − x*‖ ≤ rate^t ‖x_0 − x*‖ + floor."""

    rate: float
    floor: float


@explain_arguments()
def mixing_path(*, gain: float, fixed_point_gap: float, staleness: int, mixing: float = 1.0) -> MixingPath:
    """ρ = (1 − αs)^(1/(1+τ)) and the floor b/s. `m_constants` does it from L, μ, λ and I.

    >>> path = mixing_path(gain=1 - .904610, fixed_point_gap=.057234, staleness=5, mixing=.5)
    >>> f"{path.rate:.6g} {path.floor:.6g}"
    '0.991888 0.6'
    """
    own, weight = number("gain", gain, above=0, at_most=1), number("mixing", mixing, above=0, at_most=1)
    rate = (1 - weight * own) ** (1 / (1 + count("staleness", staleness)))
    return MixingPath(rate, number("fixed_point_gap", fixed_point_gap, at_least=0) / own)


@explain_arguments()
def mixing_path_bound(
    *,
    gain: float,
    fixed_point_gap: float,
    staleness: int,
    start_distance: float,
    num_updates: ArrayLike,
    mixing: float = 1.0,
) -> Curve:
    """M: ‖x_t − x*‖ ≤ ρ^t ‖x_0 − x*‖ + b/s. `m_bound` does it from L, μ, λ and I.

    From V_{t+1} ≤ (1−α) V_t + α (q max_{[t−τ, t]} V + b).

    >>> gain = 1 - (1 - .01 * .5) ** 20
    >>> value = mixing_path_bound(gain=gain, fixed_point_gap=.3 * gain / .5, staleness=5, mixing=.5, start_distance=2,
    ...                           num_updates=200)
    >>> f"{value:.6g}"
    '0.992256'
    """
    path = mixing_path(gain=gain, fixed_point_gap=fixed_point_gap, staleness=staleness, mixing=mixing)
    start = number("start_distance", start_distance, at_least=0)
    return np.power(path.rate, whole("num_updates", num_updates)) * start + path.floor


def mixing_path_recursion(
    *,
    gain: ArrayLike,
    fixed_point_gap: ArrayLike,
    staleness: ArrayLike,
    start_distance: float,
    num_updates: int,
    mixing: ArrayLike = 1.0,
) -> NDArray[np.float64]:
    """M for steps that change: bounds V_0 … V_n of ‖x_t − x*‖, t = 0 … n = `num_updates`.

    V_{t+1} = (1 − α_t) V_t + α_t ((1 − s_t) max_{[t−τ_t, t]} V + b_t).

    Each of `gain` s_t, `fixed_point_gap` b_t, `staleness` τ_t and `mixing` α_t is what merge t used: one number, n of
    them, or (n, J) for a mean of J models. s and b are those of the rates the model was trained with, at its dispatch.

    >>> mixing_path_recursion(gain=.5, fixed_point_gap=0, staleness=[0, 1], start_distance=1, num_updates=2)
    array([1. , 0.5, 0.5])

    Returns:
        The values of the formula, one for each index.
    """
    runs = count("num_updates", num_updates)
    own = merges("gain", gain, runs, at_least=0, at_most=1)
    gap = merges("fixed_point_gap", fixed_point_gap, runs, at_least=0)
    late = merges("staleness", whole("staleness", staleness), runs).astype(int)
    weight = merges("mixing", mixing, runs, at_least=0, at_most=1)
    bound = np.empty(runs + 1)
    bound[0] = number("start_distance", start_distance, at_least=0)
    for t in range(runs):
        worst = window_maximum(bound, np.maximum(t - late[t], 0), t)
        mixed = (1 - weight[t]) * bound[t] + weight[t] * ((1 - own[t]) * worst + gap[t])
        bound[t + 1] = np.mean(mixed)
    return bound
