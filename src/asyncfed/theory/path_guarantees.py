"""Theorems on every run: P and M, for any order of clients and any delays up to the bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from asyncfed.theory.bounds import (
    LocalMap,
    delta_path_bound,
    fixed_point_gap,
    largest_delta_learning_rate,
    largest_path_learning_rate,
    local_map,
    mixing_path_bound,
)
from asyncfed.theory.conditions import steady_path, step_curvature
from asyncfed.theory.constants import Constants
from asyncfed.theory.guarantee import Curve, Guarantee
from asyncfed.theory.setting import Setting


def p_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    """P, for servers that step along deltas."""
    curvature = step_curvature(setting, constants)
    missing = [] if setting.rule.form == "deltas" else [f"it is for steps along deltas, not for {setting.rule.name}"]
    missing += steady_path(setting, curvature)
    if setting.rule.server_step > 1:
        missing.append(f"the server's step is {setting.rule.server_step:g}; P is proved up to 1")
    if setting.rule.cohort_size > 1 and not setting.lossless:
        missing.append("tickets may be lost, so that a version may take fewer deltas; see the bound along the path")
    limit = None
    if curvature is not None and setting.rule.server_step <= 1:
        limit = _largest_p_rate(setting, curvature)
    found = Guarantee(
        "P",
        "steps along deltas, any order",
        "every run",
        tuple(missing),
        setting.learning_rate,
        limit,
        open_limit=bool(setting.staleness),
    )
    if not found.applies or curvature is None or constants.start_distance is None:
        return found
    gain, stretch, gap = _map(setting, constants, curvature)
    distance = delta_path_bound(
        gain=gain,
        stretch=stretch,
        fixed_point_gap=gap,
        staleness=setting.staleness or 0,
        start_distance=constants.start_distance,
        num_updates=versions,
        server_step=setting.rule.server_step,
    )
    return _path_guarantee(found, constants, np.asarray(distance))


def _largest_p_rate(setting: Setting, curvature: tuple[float, float]) -> float:
    """The rate below which η K² τ < s, with s of the client with fewest steps and K of the one with most.

    With equal steps this is P's own limit; with unequal ones it is searched for below that, from the smallest rates up.
    """
    smoothness, convexity = curvature
    limit = largest_delta_learning_rate(
        smoothness=smoothness,
        strong_convexity=convexity,
        local_steps=setting.most_steps,
        staleness=setting.staleness or 0,
        server_step=setting.rule.server_step,
        shape=setting.shape,
    )
    if setting.fewest_steps == setting.most_steps or not setting.staleness:
        return limit

    def excess(rate: float) -> float:
        few, many = _maps(replace(setting, learning_rate=rate), curvature)
        stretch = max(few.stretch, many.stretch)
        return setting.rule.server_step * stretch**2 * (setting.staleness or 0) - few.gain

    rates = limit * np.geomspace(1e-9, 1.0, 200)
    over = next((place for place, rate in enumerate(rates) if excess(float(rate)) >= 0), None)
    if over is None:
        return limit
    return float(brentq(excess, rates[over - 1], rates[over])) if over else float(rates[0])


def m_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    """M, for servers that mix received models in."""
    curvature = step_curvature(setting, constants)
    missing = [] if setting.rule.form == "models" else [f"it is for mixing models in, not for {setting.rule.name}"]
    if setting.rule.form == "latest":
        missing = ["the latest-average rule is covered along the recorded path only"]
    missing += steady_path(setting, curvature)
    limit = None
    if curvature is not None:
        limit = largest_path_learning_rate(smoothness=curvature[0], strong_convexity=curvature[1])
        limit /= float(setting.shape.max())
    found = Guarantee("M", "mixing models in, any order", "every run", tuple(missing), setting.learning_rate, limit)
    if not found.applies or curvature is None or constants.start_distance is None:
        return found
    gain, _, gap = _map(setting, constants, curvature)
    distance = mixing_path_bound(
        gain=gain,
        fixed_point_gap=gap,
        staleness=setting.staleness or 0,
        start_distance=constants.start_distance,
        num_updates=versions,
        mixing=setting.rule.server_step,
    )
    return _path_guarantee(found, constants, np.asarray(distance))


def _map(setting: Setting, constants: Constants, curvature: tuple[float, float]) -> tuple[float, float, float]:
    """(s, K, b) that hold for every client: the fewest steps contract least, the most steps move furthest."""
    few, many = _maps(setting, curvature)
    full = setting.batches == "full"
    gradient = constants.largest_optimum_gradient if full else constants.largest_sample_gradient
    gap = fixed_point_gap(gain=many.gain, strong_convexity=curvature[1], largest_optimum_gradient=gradient or 0.0)
    return few.gain, max(few.stretch, many.stretch), float(gap)


def _maps(setting: Setting, curvature: tuple[float, float]) -> tuple[LocalMap, LocalMap]:
    """The maps of the client with fewest local steps and of the one with most."""
    smoothness, convexity = curvature
    few = local_map(
        smoothness=smoothness,
        strong_convexity=convexity,
        learning_rate=_first_rates(setting),
        local_steps=setting.fewest_steps,
    )
    many = local_map(
        smoothness=smoothness,
        strong_convexity=convexity,
        learning_rate=setting.rates,
        local_steps=setting.most_steps,
    )
    return few, many


def _first_rates(setting: Setting) -> Curve:
    """The rates of the client with fewest steps: per epoch the same, but fewer steps an epoch."""
    if setting.fewest_steps == setting.most_steps:
        return setting.rates
    per_epoch = setting.fewest_steps // setting.epochs
    longest = setting.most_steps // setting.epochs
    return setting.rates.reshape(setting.epochs, longest)[:, :per_epoch].ravel()


def _path_guarantee(found: Guarantee, constants: Constants, distance: Curve) -> Guarantee:
    """The distance, and by smoothness F(x) − F* ≤ (L_F/2) |x − x*|²."""
    smoothness = constants.objective_smoothness
    gap = None if smoothness is None else 0.5 * smoothness * distance**2
    return replace(found, distance=distance, gap=gap)
