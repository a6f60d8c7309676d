"""Guarantees: which theorem covers a run, what it promises version by version, and up to which learning rate.

A theorem is never evaluated for a rule it does not cover: what is missing is said instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from asyncfed.theory.bounds import (
    LocalMap,
    delta_path_bound,
    enough_rounds,
    fixed_point_gap,
    largest_delta_learning_rate,
    largest_paper_learning_rate,
    largest_path_learning_rate,
    largest_stale_learning_rate,
    local_map,
    mixing_path_bound,
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
from asyncfed.theory.constants import Constants
from asyncfed.theory.setting import Setting

Curve = NDArray[Any]
Covers = Literal["the mean over runs", "every run"]
ROUNDING = 1.0 + 1e-9
CORRECTED = "Theorem 1, corrected"


@dataclass(frozen=True)
class Guarantee:
    """What one theorem says about a run.

    `missing` are the conditions that fail, the step's aside. `largest_rate` is the largest learning rate for which
    the theorem would hold if nothing else were missing (None: there is none); an `open_limit` must be kept below, not
    just met. Where it `applies`, `distance[t]` bounds |x_t − x*| (for "the mean over runs": the root of the mean of its
    square) and `gap[t]` bounds F − F*, of the averaged model if `averaging`, its ratio of weights, is given.
    """

    name: str
    says: str
    covers: Covers
    missing: tuple[str, ...]
    rate: float
    largest_rate: float | None
    distance: Curve | None = None
    gap: Curve | None = None
    averaging: float | None = None
    open_limit: bool = False

    @property
    def advised_rate(self) -> float | None:
        """A rate to run with: the largest one, or half of a limit that itself is not allowed."""
        if self.largest_rate is None:
            return None
        return self.largest_rate / 2 if self.open_limit else self.largest_rate

    @property
    def step_factor(self) -> float | None:
        """How many times the run's rate exceeds the largest admissible one; up to 1 it is admissible."""
        return None if self.largest_rate is None else self.rate / self.largest_rate

    @property
    def applies(self) -> bool:
        factor = self.step_factor
        if factor is None:
            return not self.missing
        return not self.missing and (factor < 1.0 if self.open_limit else factor <= ROUNDING)

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Why it does not apply; the step comes last, for it is the easiest to change."""
        factor = self.step_factor
        if self.applies or factor is None or factor <= 1.0:
            return self.missing
        return (*self.missing, f"the rate {self.rate:.3g} is {factor:.4g} times too large")


def guarantees(setting: Setting, constants: Constants, versions: Curve) -> tuple[Guarantee, ...]:
    """Every theorem, the strongest first; curves are given at these versions (0, 1, …)."""
    makers = (_r_star, _r, _r_conv, _theorem, _theorem_printed, _p, _m, _hinge)
    return tuple(make(setting, constants, versions) for make in makers)


def admissible(found: tuple[Guarantee, ...]) -> Guarantee | None:
    """The theorem that covers the run as it is, or would with a smaller step: bounds on means before path-wise ones."""
    return next((g for g in found if not g.missing and g.largest_rate is not None), None)


# ---- conditions: each yields a sentence when it fails ----------------------------------------------------------


def _smooth_and_convex(constants: Constants, convexity: float | None) -> Iterator[str]:
    if constants.smoothness is None or not isfinite(constants.smoothness):
        yield "the loss is not smooth"
    elif not convexity:
        yield "some client's loss is not strongly convex"


def _uniform_rounds(setting: Setting) -> Iterator[str]:
    yield from setting.outside
    if setting.rule.form is None or setting.rule.form == "latest":
        yield f"it does not describe the rule {setting.rule.name}"
    elif setting.rule.form == "models" and setting.staleness != 0:
        yield "mixing models in is not a step along deltas once models are stale"
    if not setting.rule.fresh_cohorts:
        yield f"clients are not drawn independently of the model ({setting.rule.because})"
    if setting.changing_rate:
        yield f"the step changes between rounds ({setting.changing_rate})"
    if setting.fewest_steps != setting.most_steps:
        yield f"clients take different numbers of local steps ({setting.fewest_steps} to {setting.most_steps})"
    if not setting.rule.constant_weight:
        yield "updates do not all count the same"
    if not setting.lossless:
        yield "tickets are lost or dropped, so cohorts are not uniform"
    if setting.staleness is None:
        yield "staleness has no bound (set strategy.max_staleness)"


def _path(setting: Setting, curvature: tuple[float, float] | None) -> Iterator[str]:
    yield from setting.outside
    if setting.changing_rate:
        yield f"the step changes between rounds ({setting.changing_rate}); see the bound along the recorded path"
    if not setting.rule.constant_weight:
        yield "updates count less the staler they are; see the bound along the recorded path"
    if setting.staleness is None:
        yield "staleness has no bound (set strategy.max_staleness)"
    if curvature is None:
        yield "a local step's loss (a mini-batch's) is not smooth and strongly convex; an L2 penalty makes it so"


def step_curvature(setting: Setting, constants: Constants) -> tuple[float, float] | None:
    """(L, μ) of every loss a local step is made on, or None if some is not strongly convex."""
    if setting.batches == "full":
        smoothness, convexity = constants.smoothness, constants.strong_convexity
    else:
        smoothness, convexity = constants.batch_smoothness, constants.batch_strong_convexity
    if smoothness is None or not isfinite(smoothness) or not convexity:
        return None
    return smoothness, convexity


# ---- theorems on expectations ----------------------------------------------------------------------------------


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
    missing = (*_smooth_and_convex(constants, convexity), *_uniform_rounds(setting), *more)
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


def _full_gradients(setting: Setting) -> Iterator[str]:
    if setting.batches != "full":
        yield "reshuffled batches are not conditionally unbiased (R-conv allows them)"


def _equal_batches(setting: Setting) -> Iterator[str]:
    if setting.batches == "uneven":
        yield "the last batch of an epoch is shorter; choose a batch size that divides every client's rows"


def _r_star(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    return _stale(
        "R*",
        "stale rounds, noise at the optimum only",
        setting,
        constants,
        versions,
        (constants.smoothness, constants.strong_convexity),
        0.0,
        _full_gradients(setting),
        (r_star_averaged, r_star_last),
        2.0,
    )


def _r(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    return _stale(
        "R",
        "stale rounds, under the paper's Assumption 2",
        setting,
        constants,
        versions,
        (constants.smoothness, constants.strong_convexity),
        0.0,
        _full_gradients(setting),
        (r_averaged, r_last),
        2.0,
    )


def _r_conv(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    full = setting.batches == "full"
    return _stale(
        "R-conv",
        "stale rounds, clients merely convex, reshuffled epochs",
        setting,
        constants,
        versions,
        (constants.smoothness if full else constants.batch_smoothness, constants.objective_strong_convexity),
        0.0 if full else constants.gradient_variance_mean,
        _equal_batches(setting),
        (r_conv_averaged, r_conv_last),
        4.0,
    )


def _theorem(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    return _paper_theorem(setting, constants, versions, as_printed=False)


def _theorem_printed(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
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
        *_smooth_and_convex(constants, convexity),
        *_sum_of_deltas(setting, constants, as_printed),
        *(words for words in _uniform_rounds(setting) if not words.startswith("it does not describe")),
        *_full_gradients(setting),
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


def _hinge(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    missing = [*_uniform_rounds(setting), *_equal_batches(setting)]
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


# ---- path-wise theorems: any order, any delays up to the bound ---------------------------------------------------


def _p(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    curvature = step_curvature(setting, constants)
    missing = [] if setting.rule.form == "deltas" else [f"it is for steps along deltas, not for {setting.rule.name}"]
    missing += _path(setting, curvature)
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


def _m(setting: Setting, constants: Constants, versions: Curve) -> Guarantee:
    curvature = step_curvature(setting, constants)
    missing = [] if setting.rule.form == "models" else [f"it is for mixing models in, not for {setting.rule.name}"]
    if setting.rule.form == "latest":
        missing = ["the latest-average rule is covered along the recorded path only"]
    missing += _path(setting, curvature)
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
    per_epoch = setting.fewest_steps // setting.epochs
    longest = setting.most_steps // setting.epochs
    return setting.rates.reshape(setting.epochs, longest)[:, :per_epoch].ravel()


def _path_guarantee(found: Guarantee, constants: Constants, distance: Curve) -> Guarantee:
    """The distance, and by smoothness F(x) − F* ≤ (L_F/2) |x − x*|²."""
    smoothness = constants.objective_smoothness
    gap = None if smoothness is None else 0.5 * smoothness * distance**2
    return replace(found, distance=distance, gap=gap)
