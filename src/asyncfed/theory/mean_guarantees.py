"""Theorems on the mean over runs: R*, R and R-conv, the paper's own, and the subgradient bound for the hinge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.theory.bounds import (
    StaleSetting,
    TheoremSetting,
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


class StaleBound(Protocol):
    """A bound of the family R*, R, R-conv."""

    def __call__(self, setting: StaleSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve: ...


class StaleTheorem(NamedTuple):
    """In what R*, R and R-conv differ. `halves`: the averaged model's weights have the ratio 1 − μγ/halves."""

    name: str
    says: str
    averaged: StaleBound
    last: StaleBound
    halves: float = 2.0


R_STAR = StaleTheorem("R*", "stale rounds, noise at the optimum only", r_star_averaged, r_star_last)
R = StaleTheorem("R", "stale rounds, under the paper's Assumption 2", r_averaged, r_last)
R_CONV = StaleTheorem(
    "R-conv", "stale rounds, clients merely convex, reshuffled epochs", r_conv_averaged, r_conv_last, halves=4.0
)


def r_star_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    """R*, for steps on all rows."""
    return _full_gradient_guarantee(R_STAR, setting, constants, versions)


def r_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    """R, for steps on all rows."""
    return _full_gradient_guarantee(R, setting, constants, versions)


def r_conv_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    """R-conv, which also allows reshuffled epochs of equal batches."""
    full = setting.batches == "full"
    smoothness = constants.smoothness if full else constants.batch_smoothness
    variance = 0.0 if full else constants.gradient_variance_mean
    curvature = (smoothness, constants.objective_strong_convexity)
    return _stale_guarantee(R_CONV, setting, constants, versions, curvature, variance, equal_batches(setting))


def _full_gradient_guarantee(
    theorem: StaleTheorem, setting: Setting, constants: Constants, versions: Curve
) -> Guarantee:
    curvature = (constants.smoothness, constants.strong_convexity)
    return _stale_guarantee(theorem, setting, constants, versions, curvature, 0.0, full_gradients(setting))


def _stale_guarantee(
    theorem: StaleTheorem,
    setting: Setting,
    constants: Constants,
    versions: Curve,
    curvature: tuple[float | None, float | None],
    variance: float | None,
    more_conditions: Iterator[str],
) -> Guarantee:
    """What R*, R or R-conv say, with L and μ of `curvature` and δ² of `variance`."""
    smoothness, convexity = curvature
    missing = (*smooth_and_convex(constants, convexity), *uniform_rounds(setting), *more_conditions)
    limit = None
    if smoothness is not None and isfinite(smoothness):
        limit = largest_stale_learning_rate(
            smoothness=smoothness,
            staleness=setting.staleness or 0,
            local_steps=setting.most_steps,
            server_step=setting.rule.server_step,
            shape=setting.shape,
        )
    found = Guarantee(theorem.name, theorem.says, "the mean over runs", missing, setting.learning_rate, limit)
    if not found.applies or smoothness is None or convexity is None or constants.start_distance is None:
        return found
    run = StaleSetting(
        smoothness=smoothness,
        strong_convexity=convexity,
        gradient_variance=variance or 0.0,
        optimum_heterogeneity=constants.optimum_heterogeneity or 0.0,
        num_clients=setting.num_clients,
        cohort_size=setting.rule.cohort_size,
        local_steps=setting.most_steps,
        learning_rate=setting.rates,
        start_distance_squared=constants.start_distance**2,
        staleness=setting.staleness or 0,
        server_step=setting.rule.server_step,
    )
    return replace(
        found,
        distance=np.sqrt(_from_version_one(theorem.last, run, versions)),
        gap=np.asarray(theorem.averaged(run, last_index=versions)),
        averaging=1.0 - convexity * setting.effective_step / theorem.halves,
    )


def _from_version_one(last: StaleBound, run: StaleSetting, versions: Curve) -> Curve:
    """A bound on x_{T+1} for T = version − 1; at version 0 the start itself."""
    bound = np.asarray(last(run, last_index=np.maximum(versions - 1, 0)), dtype=np.float64)
    return np.where(versions == 0, run.start_distance_squared, bound)


def theorem_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    """Theorem 1 as it should read: no staleness, sum of deltas."""
    return _paper_theorem(setting, constants, versions, as_printed=False)


def theorem_printed_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    """Theorem 1 as printed, where that is true."""
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
    run = TheoremSetting(
        smoothness=smoothness,
        strong_convexity=convexity,
        gradient_variance=0.0,
        optimum_heterogeneity=constants.optimum_heterogeneity or 0.0,
        num_clients=setting.num_clients,
        cohort_size=setting.round_size,
        local_steps=setting.most_steps,
        learning_rate=setting.learning_rate,
        start_distance_squared=constants.start_distance**2,
    )
    bound = theorem_as_printed if as_printed else theorem_corrected
    gap = bound(run, last_index=versions)
    return replace(found, gap=np.asarray(gap), averaging=1.0 - convexity * run.effective_step / 2.0)


def hinge_guarantee(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    """The subgradient bound for the plain hinge without a penalty."""
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
