"""How far is a run from what no method can beat: the best possible clock of its problem and clients beside its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asyncfed.analysis.participation import mean_durations
from asyncfed.certificates.certifiable import Certifiable
from asyncfed.certificates.measurements import MeasuredRun
from asyncfed.certificates.merge_rules import tickets_in_flight
from asyncfed.certificates.settings import planned_work
from asyncfed.core.errors import AsyncFedError
from asyncfed.core.types import Work
from asyncfed.experiment import Experiment
from asyncfed.theory.constants import Constants
from asyncfed.theory.time_complexity import (
    DataLikeness,
    SpeedUp,
    best_clock,
    concurrency_speed_up,
    convex_counts,
    strongly_convex_counts,
)

PLANNED_TARGET = 0.01
"""The target before a run, as a part of the objective gap at the start."""


@dataclass(frozen=True)
class BestClock:
    """The line to hold runs against. Up to constants and logarithms, so that only its order of magnitude counts.

    Attributes:
        problem: L, mu, sigma^2 and where the run starts.
        gradient_times: (C,) mean seconds of one mini-batch gradient, client by client: a ticket's computing time over
            its local steps. Transfers count as free.
        target: the objective gap that is to be reached: the smallest one that every run reached, or, before a run, a
            hundredth of the gap at the start.
        run_seconds: when the runs reached it, on average; None before a run, or if one never was below its start.
        speed_up: what not waiting for the slowest saves; None if the strategy does not say how many are at work.
    """

    problem: ProblemSize
    gradient_times: np.ndarray
    target: float
    run_seconds: float | None
    speed_up: SpeedUp | None

    def seconds(self, target: float, data: DataLikeness) -> float:
        """The best possible clock for this objective gap.

        The smaller of the convex and the strongly convex one: a problem that is both is no harder than either.
        """
        size = self.problem
        counts = [
            convex_counts(
                smoothness=size.smoothness,
                start_distance=size.start_distance,
                gradient_variance=size.gradient_variance,
                target=target,
            )
        ]
        if size.strong_convexity > 0:
            counts.append(
                strongly_convex_counts(
                    smoothness=size.smoothness,
                    strong_convexity=size.strong_convexity,
                    gradient_variance=size.gradient_variance,
                    target=target,
                )
            )
        return min(best_clock(self.gradient_times, each, data) for each in counts)


@dataclass(frozen=True)
class ProblemSize:
    """What the best possible clock depends on: L_F, mu_F, sigma^2 at the optimum, F(x_0) - F* and |x_0 - x*|."""

    smoothness: float
    strong_convexity: float
    gradient_variance: float
    start_gap: float
    start_distance: float


def best_clock_of(
    experiment: Experiment, problem: Certifiable, found: Constants, runs: Sequence[MeasuredRun]
) -> tuple[BestClock | None, str]:
    """The line for an experiment, and "" or why there is none."""
    size = _problem_size(found)
    if isinstance(size, str):
        return None, size
    if not isinstance(getattr(experiment.strategy, "work", None), Work):
        return None, "the strategy has no field `work` that says what a ticket's time is for"
    try:
        means = mean_durations(experiment, problem.num_examples, problem)
    except AsyncFedError as error:
        return None, str(error)
    work = planned_work(experiment.strategy, problem.num_examples, experiment.seed)
    steps = np.array([work.count_steps(int(rows)) for rows in problem.num_examples])
    times = means.compute / np.maximum(1, steps)
    if not (times > 0).all():
        return None, "some clients compute in no time"
    target, reached = _target(size.start_gap, runs)
    at_once = tickets_in_flight(experiment.strategy)
    speed_up = None
    if at_once is not None and np.isfinite(means.total).all():
        speed_up = concurrency_speed_up(means.total, at_once)
    return BestClock(size, times, target, reached, speed_up), ""


def _problem_size(found: Constants) -> ProblemSize | str:
    needed = {
        "objective_smoothness": found.objective_smoothness,
        "gradient_variance_mean": found.gradient_variance_mean,
        "optimal_value": found.optimal_value,
        "start_distance": found.start_distance,
    }
    for name, value in needed.items():
        if value is None:
            return found.not_applicable.get(name, found.not_applicable.get("optimum", f"{name} is not known"))
    smoothness, variance, value, distance = map(float, needed.values())  # type: ignore[arg-type]
    gap = found.start_value - value
    if not (gap > 0 and distance > 0 and smoothness > 0):
        return "the run starts at the optimum"
    return ProblemSize(smoothness, found.objective_strong_convexity, variance, gap, distance)


def _target(start_gap: float, runs: Sequence[MeasuredRun]) -> tuple[float, float | None]:
    """The smallest objective gap that every run reached, and when they did on average."""
    if not runs or not all(np.isfinite(run.gap).any() for run in runs):
        return PLANNED_TARGET * start_gap, None
    target = max(float(np.nanmin(run.gap)) for run in runs)
    if not 0 < target < start_gap:
        return PLANNED_TARGET * start_gap, None
    first = [float(run.seconds[np.argmax(run.gap <= target)]) for run in runs]
    return target, sum(first) / len(first)
