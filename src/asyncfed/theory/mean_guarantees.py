"""Theorems on the mean over runs: R*, R and R-conv, the paper's own, and the subgradient bound for the hinge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from asyncfed.theory.bounds import (
    enough_rounds,
    largest_paper_learning_rate,
    largest_stale_learning_rate,
    r_averaged,
    r_conv_averaged,
    r_conv_last,
    r_last,
    r_star_averaged,
    r_star_last,
    subgradient_bound,
    theorem_as_printed,
    theorem_corrected,
)
from asyncfed.theory.conditions import equal_batches, full_gradients, smooth_and_convex, uniform_rounds
from asyncfed.theory.constants import Constants
from asyncfed.theory.guarantee import Curve, Guarantee
from asyncfed.theory.setting import Setting

CORRECTED = "Theorem 1, corrected"


def _stale(
    name: str,
    says: str,
    setting: Setting,
    constants: Constants,
    versions: Curve,
    curvature: tuple[float | None, float | None],
    variance: float | None,
    more: Iterator[str],
    curves: tuple[Callable[..., Curve], Callable[..., Curve]],
    halves: float,
) -> Guarantee:
    """R*, R and R-conv differ in L, μ, δ² and constants; the rest is the same."""
    smoothness, convexity = curvature
    missing = (*smooth_and_convex(constants, convexity), *uniform_rounds(setting), *more)
    limit = None
    if smoothness is not None and isfinite(smoothness):
        limit = largest_stale_learning_rate(
            smoothness=smoothness,
            staleness=setting.staleness or 0,
            local_steps=setting.most_steps,
            server_step=setting.rule.server_step,
            shape=setting.shape,
        )
    found = Guarantee(name, says, "the mean over runs", missing, setting.learning_rate, limit)
    if not found.applies or smoothness is None or convexity is None or constants.start_distance is None:
        return found
    run: dict[str, Any] = {
        "smoothness": smoothness,
        "strong_convexity": convexity,
        "gradient_variance": variance or 0.0,
        "optimum_heterogeneity": constants.optimum_heterogeneity,
        "num_clients": setting.num_clients,
        "cohort_size": setting.rule.cohort_size,
        "local_steps": setting.most_steps,
        "learning_rate": setting.rates,
        "staleness": setting.staleness or 0,
        "server_step": setting.rule.server_step,
        "start_distance_squared": constants.start_distance**2,
    }
    averaged, last = curves
    return replace(
        found,
        distance=np.sqrt(_from_version_one(last, run, versions, constants.start_distance**2)),
        gap=np.asarray(averaged(last_index=versions, **run)),
        averaging=1.0 - convexity * setting.effective_step / halves,
    )


def _from_version_one(last: Callable[..., Curve], run: dict[str, Any], versions: Curve, start: float) -> Curve:
    """A bound on x_{T+1} for T = version − 1; at version 0 the start itself."""
    bound = np.asarray(last(last_index=np.maximum(versions - 1, 0), **run), dtype=np.float64)
    return np.where(versions == 0, start, bound)


def r_star_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    return _stale(
        "R*",
        "stale rounds, noise at the optimum only",
        setting,
        constants,
        versions,
        (constants.smoothness, constants.strong_convexity),
        0.0,
        full_gradients(setting),
        (r_star_averaged, r_star_last),
        2.0,
    )


def r_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    return _stale(
        "R",
        "stale rounds, under the paper's Assumption 2",
        setting,
        constants,
        versions,
        (constants.smoothness, constants.strong_convexity),
        0.0,
        full_gradients(setting),
        (r_averaged, r_last),
        2.0,
    )


def r_conv_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    full = setting.batches == "full"
    return _stale(
        "R-conv",
        "stale rounds, clients merely convex, reshuffled epochs",
        setting,
        constants,
        versions,
        (constants.smoothness if full else constants.batch_smoothness, constants.objective_strong_convexity),
        0.0 if full else constants.gradient_variance_mean,
        equal_batches(setting),
        (r_conv_averaged, r_conv_last),
        4.0,
    )


def theorem_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    return _paper_theorem(setting, constants, versions, as_printed=False)


def theorem_printed_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    return _paper_theorem(setting, constants, versions, as_printed=True)


def _sum_of_deltas(setting: Setting, constants: Constants, as_printed: bool) -> Iterator[str]:
    if not (setting.rule.adds_up or setting.rule.sequential):
        yield f"it is about adding deltas up (or passing the model on); the rule here is {setting.rule.name}"
    if setting.staleness != 0:
        yield "it is false with staleness"
    if setting.shape.min() < setting.shape.max():
        yield "the rate decays within a ticket"
    if as_printed and setting.round_size < setting.num_clients:
        yield "as printed it drops the client-sampling term, so it is false for J < C"
    if as_printed and setting.num_rounds is not None and constants.strong_convexity and constants.smoothness:
        step = min(setting.learning_rate * setting.round_size * setting.most_steps, 1 / (6 * constants.smoothness))
        convexity = constants.strong_convexity
        if not enough_rounds(strong_convexity=convexity, effective_step=step, last_index=setting.num_rounds - 1):
            yield "as printed it is false for so few rounds"


def _paper_theorem(setting: Setting, constants: Constants, versions: Curve, as_printed: bool) -> Guarantee:
    name = "Theorem 1, as printed" if as_printed else CORRECTED
    says = "the paper's statement (with the weights its proof needs)" if as_printed else "no staleness, sum of deltas"
    convexity, smoothness = constants.strong_convexity, constants.smoothness
    missing = (
        *smooth_and_convex(constants, convexity),
        *_sum_of_deltas(setting, constants, as_printed),
        *(words for words in uniform_rounds(setting) if not words.startswith("it does not describe")),
        *full_gradients(setting),
    )
    limit = None
    if smoothness is not None and isfinite(smoothness):
        limit = largest_paper_learning_rate(
            smoothness=smoothness, cohort_size=setting.round_size, local_steps=setting.most_steps
        )
    found = Guarantee(name, says, "the mean over runs", missing, setting.learning_rate, limit)
    if not found.applies or smoothness is None or convexity is None or constants.start_distance is None:
        return found
    run: dict[str, Any] = {
        "smoothness": smoothness,
        "strong_convexity": convexity,
        "gradient_variance": 0.0,
        "optimum_heterogeneity": constants.optimum_heterogeneity,
        "num_clients": setting.num_clients,
        "local_steps": setting.most_steps,
        "learning_rate": setting.learning_rate,
        "start_distance_squared": constants.start_distance**2,
        "last_index": versions,
    }
    gap = theorem_as_printed(**run) if as_printed else theorem_corrected(**run, cohort_size=setting.round_size)
    step = setting.learning_rate * setting.round_size * setting.most_steps
    return replace(found, gap=np.asarray(gap), averaging=1.0 - convexity * step / 2.0)


def hinge_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    missing = [*uniform_rounds(setting), *equal_batches(setting)]
    if constants.largest_subgradient is None:
        missing.append("it is for the plain hinge without an L2 penalty")
    if setting.rule.server_step != 1.0 or setting.shape.min() < setting.shape.max():
        missing.append("it needs a plain average of models and equal local steps")
    if constants.start_distance is None:
        missing.append("no minimiser is known")
    found = Guarantee(
        "hinge",
        "subgradient bound for the plain hinge",
        "the mean over runs",
        tuple(missing),
        setting.learning_rate,
        None,
    )
    if missing or constants.start_distance is None or constants.largest_subgradient is None:
        return found
    gap = subgradient_bound(
        start_distance_squared=constants.start_distance**2,
        effective_step=setting.effective_step,
        last_index=versions,
        largest_subgradient=constants.largest_subgradient,
        staleness=setting.staleness or 0,
        local_steps=setting.most_steps,
    )
    return replace(found, gap=np.asarray(gap), averaging=1.0)
