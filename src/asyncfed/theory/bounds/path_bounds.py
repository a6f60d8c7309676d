"""P and M in one call, from the problem's own numbers: L, μ, λ, I, η or α, and τ.

Both bound ‖x_t − x*‖, a distance and not its square, of every run, not of the mean: no order of clients and no delays
up to τ lead further away. P is for servers that add deltas, M for servers that mix received models in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explained
from asyncfed.theory.bounds.arguments import Curve, number
from asyncfed.theory.bounds.local_maps import LocalMap, largest_path_learning_rate, local_map
from asyncfed.theory.bounds.local_maps import fixed_point_gap as fixed_point_gap_of
from asyncfed.theory.bounds.path_deltas import (
    P_STEP,
    delta_condition,
    delta_path,
    delta_path_bound,
    largest_delta_learning_rate,
)
from asyncfed.theory.bounds.path_mixing import mixing_path, mixing_path_bound

RATES = "λ_i, 0 < λ_i ≤ 2/(L + μ): one number, or I of them."
GRADIENT = "max_c ‖∇F_c(x*)‖ ≥ 0, not squared; from it b ≤ (s/μ) max_c ‖∇F_c(x*)‖. Give this or `fixed_point_gap`."
GAP = (
    "b = max_c ‖x* − G_c(x*)‖ ≥ 0, not squared: run I local steps from x* and measure. Give this or "
    "`largest_optimum_gradient`."
)


class PConstants(NamedTuple):
    """The numbers of P: ‖x_t − x*‖ ≤ rate^t ‖x_0 − x*‖ + floor.

    `gain` s, `stretch` K, `fixed_point_gap` b, `rate` ρ, `floor` b(1 + ηKτ)/(s − ηK²τ), and `largest_learning_rate`,
    below which P holds (for unequal local rates: that of the largest of them).
    """

    gain: float
    stretch: float
    fixed_point_gap: float
    rate: float
    floor: float
    largest_learning_rate: float


class MConstants(NamedTuple):
    """The numbers of M: ‖x_t − x*‖ ≤ rate^t ‖x_0 − x*‖ + floor.

    `shrink` q = 1 − s, `gain` s, `fixed_point_gap` b, `rate` ρ, `floor` b/s, and `largest_learning_rate` 2/(L + μ), up
    to which M holds, whatever the staleness.
    """

    shrink: float
    gain: float
    fixed_point_gap: float
    rate: float
    floor: float
    largest_learning_rate: float


@explained(learning_rate=RATES, server_step=P_STEP, largest_optimum_gradient=GRADIENT, fixed_point_gap=GAP)
def p_constants(
    *,
    smoothness: float,
    strong_convexity: float,
    learning_rate: ArrayLike,
    local_steps: int,
    staleness: int,
    server_step: float = 1.0,
    largest_optimum_gradient: float | None = None,
    fixed_point_gap: float | None = None,
) -> PConstants:
    """s = 1 − Π(1 − λ_i μ), K = min(L s/μ, 2 − s), ρ = (1 − ηs + η²K²τ)^(1/(1+2τ)) and the floor of P, if η K² τ < s.

    >>> found = p_constants(smoothness=4, strong_convexity=.5, learning_rate=.002, local_steps=5, staleness=2,
    ...                     largest_optimum_gradient=.3)
    >>> f"{found.gain:.6g} {found.stretch:.6g} {found.rate:.6g} {found.floor:.6g} {found.largest_learning_rate:.3g}"
    '0.00499001 0.0399201 0.999639 1.79336 0.00313'
    """
    of_client, gap = client_numbers(
        smoothness, strong_convexity, learning_rate, local_steps, largest_optimum_gradient, fixed_point_gap
    )
    fastest = float(np.max(np.asarray(learning_rate, dtype=float)))
    limit = largest_delta_learning_rate(
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        local_steps=local_steps,
        staleness=staleness,
        server_step=server_step,
        shape=np.asarray(learning_rate, dtype=float) / fastest,
    )
    _, gain, stretch = of_client
    ratio = delta_condition(gain=gain, stretch=stretch, staleness=staleness, server_step=server_step)
    if ratio >= 1:
        raise ConfigError(
            f"P needs η K² τ / s below 1, but it is {ratio:.6g} (η {server_step:g}, K {stretch:.6g}, τ {staleness}, "
            f"s {gain:.6g}). Take a learning_rate below {limit:.6g}."
        )
    rate, floor = delta_path(
        gain=gain, stretch=stretch, fixed_point_gap=gap, staleness=staleness, server_step=server_step
    )
    return PConstants(gain, stretch, gap, rate, floor, limit)


@explained(learning_rate=RATES, server_step=P_STEP, largest_optimum_gradient=GRADIENT, fixed_point_gap=GAP)
def p_bound(
    *,
    smoothness: float,
    strong_convexity: float,
    learning_rate: ArrayLike,
    local_steps: int,
    staleness: int,
    server_step: float = 1.0,
    largest_optimum_gradient: float | None = None,
    fixed_point_gap: float | None = None,
    start_distance: float,
    num_updates: ArrayLike,
) -> Curve:
    """P: ‖x_t − x*‖ ≤ ρ^t ‖x_0 − x*‖ + b(1 + ηKτ)/(s − ηK²τ), for a server that adds η times each delta.

    >>> value = p_bound(smoothness=4, strong_convexity=.5, learning_rate=.002, local_steps=5, staleness=2,
    ...                 largest_optimum_gradient=.3, start_distance=2, num_updates=1500)
    >>> f"{value:.6g}"
    '2.95732'
    """
    found = p_constants(
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        learning_rate=learning_rate,
        local_steps=local_steps,
        staleness=staleness,
        server_step=server_step,
        largest_optimum_gradient=largest_optimum_gradient,
        fixed_point_gap=fixed_point_gap,
    )
    return delta_path_bound(
        gain=found.gain,
        stretch=found.stretch,
        fixed_point_gap=found.fixed_point_gap,
        staleness=staleness,
        start_distance=start_distance,
        num_updates=num_updates,
        server_step=server_step,
    )


@explained(learning_rate=RATES, largest_optimum_gradient=GRADIENT, fixed_point_gap=GAP)
def m_constants(
    *,
    smoothness: float,
    strong_convexity: float,
    learning_rate: ArrayLike,
    local_steps: int,
    staleness: int,
    mixing: float = 1.0,
    largest_optimum_gradient: float | None = None,
    fixed_point_gap: float | None = None,
) -> MConstants:
    """q = Π(1 − λ_i μ), s = 1 − q, ρ = (1 − αs)^(1/(1+τ)) and the floor b/s of M.

    >>> found = m_constants(smoothness=4, strong_convexity=.5, learning_rate=.01, local_steps=20, staleness=5,
    ...                     mixing=.5, largest_optimum_gradient=.3)
    >>> f"{found.shrink:.6g} {found.rate:.6g} {found.floor:.6g} {found.largest_learning_rate:.6g}"
    '0.90461 0.991888 0.6 0.444444'
    """
    (shrink, gain, _), gap = client_numbers(
        smoothness, strong_convexity, learning_rate, local_steps, largest_optimum_gradient, fixed_point_gap
    )
    rate, floor = mixing_path(gain=gain, fixed_point_gap=gap, staleness=staleness, mixing=mixing)
    limit = largest_path_learning_rate(smoothness=smoothness, strong_convexity=strong_convexity)
    return MConstants(shrink, gain, gap, rate, floor, limit)


@explained(learning_rate=RATES, largest_optimum_gradient=GRADIENT, fixed_point_gap=GAP)
def m_bound(
    *,
    smoothness: float,
    strong_convexity: float,
    learning_rate: ArrayLike,
    local_steps: int,
    staleness: int,
    mixing: float = 1.0,
    largest_optimum_gradient: float | None = None,
    fixed_point_gap: float | None = None,
    start_distance: float,
    num_updates: ArrayLike,
) -> Curve:
    """M: ‖x_t − x*‖ ≤ ρ^t ‖x_0 − x*‖ + b/s, for a server that mixes received models in, whatever the staleness.

    >>> value = m_bound(smoothness=4, strong_convexity=.5, learning_rate=.01, local_steps=20, staleness=5, mixing=.5,
    ...                 largest_optimum_gradient=.3, start_distance=2, num_updates=200)
    >>> f"{value:.6g}"
    '0.992256'
    """
    found = m_constants(
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        learning_rate=learning_rate,
        local_steps=local_steps,
        staleness=staleness,
        mixing=mixing,
        largest_optimum_gradient=largest_optimum_gradient,
        fixed_point_gap=fixed_point_gap,
    )
    return mixing_path_bound(
        gain=found.gain,
        fixed_point_gap=found.fixed_point_gap,
        staleness=staleness,
        start_distance=start_distance,
        num_updates=num_updates,
        mixing=mixing,
    )


def client_numbers(
    smoothness: float,
    strong_convexity: float,
    learning_rate: ArrayLike,
    local_steps: int,
    largest_optimum_gradient: float | None,
    measured_gap: float | None,
) -> tuple[LocalMap, float]:
    """(q, s, K) of I local steps, and b: as measured, or bounded by the largest gradient at the optimum."""
    of_client = local_map(
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        learning_rate=learning_rate,
        local_steps=local_steps,
    )
    if measured_gap is not None and largest_optimum_gradient is None:
        return of_client, number("fixed_point_gap", measured_gap, at_least=0)
    if measured_gap is None and largest_optimum_gradient is not None:
        gap = fixed_point_gap_of(
            gain=of_client.gain,
            strong_convexity=strong_convexity,
            largest_optimum_gradient=largest_optimum_gradient,
        )
        return of_client, float(gap)
    given = "both are" if measured_gap is not None else "neither is"
    raise ConfigError(
        f"Of largest_optimum_gradient and fixed_point_gap {given} given, but exactly one is needed. "
        "Give the largest ‖∇F_c(x*)‖, or how far local training leads away from x*."
    )
