"""P and M in one call, from the problem's own numbers: L, μ, λ, I, η or α, and τ.

Both bound ‖x_t − x*‖, a distance and not its square, of every run, not of the mean: no order of clients and no delays
up to τ lead further away. P is for servers that add deltas, M for servers that mix received models in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, number, whole
from asyncfed.theory.bounds.local_maps import LocalMap, fixed_point_gap, largest_path_learning_rate, local_map
from asyncfed.theory.bounds.path_deltas import delta_condition, delta_path, largest_delta_learning_rate
from asyncfed.theory.bounds.path_mixing import mixing_path
from asyncfed.theory.bounds.settings import PathSetting


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


@explain_arguments()
def p_constants(setting: PathSetting) -> PConstants:
    """s = 1 − Π(1 − λ_i μ), K = min(L s/μ, 2 − s), ρ = (1 − ηs + η²K²τ)^(1/(1+2τ)) and the floor of P, if η K² τ < s.

    >>> run = PathSetting(smoothness=4, strong_convexity=.5, learning_rate=.002, local_steps=5, staleness=2,
    ...                   largest_optimum_gradient=.3)
    >>> found = p_constants(run)
    >>> f"{found.gain:.6g} {found.stretch:.6g} {found.rate:.6g} {found.floor:.6g} {found.largest_learning_rate:.3g}"
    '0.00499001 0.0399201 0.999639 1.79336 0.00313'
    """
    (_, gain, stretch), gap = client_numbers(setting)
    step, staleness = setting.server_step, setting.staleness
    rates = np.asarray(setting.learning_rate, dtype=float)
    limit = largest_delta_learning_rate(
        smoothness=setting.smoothness,
        strong_convexity=setting.strong_convexity,
        local_steps=setting.local_steps,
        staleness=staleness,
        server_step=step,
        shape=rates / rates.max(),
    )
    ratio = delta_condition(gain=gain, stretch=stretch, staleness=staleness, server_step=step)
    if ratio >= 1:
        raise ConfigError(
            f"P needs η K² τ / s below 1, but it is {ratio:.6g} (η {step:g}, K {stretch:.6g}, τ {staleness}, "
            f"s {gain:.6g}). Take a learning_rate below {limit:.6g}."
        )
    rate, floor = delta_path(gain=gain, stretch=stretch, fixed_point_gap=gap, staleness=staleness, server_step=step)
    return PConstants(gain, stretch, gap, rate, floor, limit)


@explain_arguments()
def p_bound(setting: PathSetting, *, start_distance: float, num_updates: ArrayLike) -> Curve:
    """P: ‖x_t − x*‖ ≤ ρ^t ‖x_0 − x*‖ + b(1 + ηKτ)/(s − ηK²τ), for a server that adds η times each delta.

    >>> run = PathSetting(smoothness=4, strong_convexity=.5, learning_rate=.002, local_steps=5, staleness=2,
    ...                   largest_optimum_gradient=.3)
    >>> f"{p_bound(run, start_distance=2, num_updates=1500):.6g}"
    '2.95732'
    """
    return shrinking_ball(p_constants(setting), start_distance, num_updates)


@explain_arguments()
def m_constants(setting: PathSetting) -> MConstants:
    """q = Π(1 − λ_i μ), s = 1 − q, ρ = (1 − αs)^(1/(1+τ)) and the floor b/s of M.

    >>> run = PathSetting(smoothness=4, strong_convexity=.5, learning_rate=.01, local_steps=20, staleness=5,
    ...                   server_step=.5, largest_optimum_gradient=.3)
    >>> found = m_constants(run)
    >>> f"{found.shrink:.6g} {found.rate:.6g} {found.floor:.6g} {found.largest_learning_rate:.6g}"
    '0.90461 0.991888 0.6 0.444444'
    """
    (shrink, gain, _), gap = client_numbers(setting)
    rate, floor = mixing_path(gain=gain, fixed_point_gap=gap, staleness=setting.staleness, mixing=setting.server_step)
    limit = largest_path_learning_rate(smoothness=setting.smoothness, strong_convexity=setting.strong_convexity)
    return MConstants(shrink, gain, gap, rate, floor, limit)


@explain_arguments()
def m_bound(setting: PathSetting, *, start_distance: float, num_updates: ArrayLike) -> Curve:
    """M: ‖x_t − x*‖ ≤ ρ^t ‖x_0 − x*‖ + b/s, for a server that mixes received models in, whatever the staleness.

    >>> run = PathSetting(smoothness=4, strong_convexity=.5, learning_rate=.01, local_steps=20, staleness=5,
    ...                   server_step=.5, largest_optimum_gradient=.3)
    >>> f"{m_bound(run, start_distance=2, num_updates=200):.6g}"
    '0.992256'
    """
    return shrinking_ball(m_constants(setting), start_distance, num_updates)


def client_numbers(setting: PathSetting) -> tuple[LocalMap, float]:
    """(q, s, K) of I local steps, and b: as measured, or bounded by the largest gradient at the optimum."""
    of_client = local_map(
        smoothness=setting.smoothness,
        strong_convexity=setting.strong_convexity,
        learning_rate=setting.learning_rate,
        local_steps=setting.local_steps,
    )
    if setting.fixed_point_gap is not None:
        return of_client, float(setting.fixed_point_gap)
    assert setting.largest_optimum_gradient is not None
    gap = fixed_point_gap(
        gain=of_client.gain,
        strong_convexity=setting.strong_convexity,
        largest_optimum_gradient=setting.largest_optimum_gradient,
    )
    return of_client, float(gap)


def shrinking_ball(found: PConstants | MConstants, start_distance: float, num_updates: ArrayLike) -> Curve:
    """ρ^t ‖x_0 − x*‖ + floor."""
    start = number("start_distance", start_distance, at_least=0)
    return np.power(found.rate, whole("num_updates", num_updates)) * start + found.floor
