"""What a run is judged by: the target, what reaching it cost, and a score by which settings are ranked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, log
from typing import Literal, TypeAlias, get_args

import numpy as np

from asyncfed.advice.trial_run import TrialRun
from asyncfed.analysis.protocols import Axis
from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Record

Aim: TypeAlias = Literal["time", "bytes", "energy", "worst_clients"]
AIMS: tuple[Aim, ...] = get_args(Aim)

AXIS_OF: dict[Aim, Axis] = {"time": "elapsed", "bytes": "bytes", "energy": "energy"}
"""What each aim spends; `worst_clients` is judged by the budget of time, which is the same for all."""

MISSED = 20.0
"""Added to the score, a logarithm, of a run over the whole budget that missed the target: it ranks below all others."""

WORTHLESS = 100.0
"""The score of a run that diverged."""

LEAST_PROGRESS = 1e-4
TIE = 1e-3
"""The weight of what remained at the end: it decides only between runs that reach the target at the same cost."""


class Target(Record):
    """What is to be reached: `level = start - progress * (start - best)`.

    Args:
        metric: the measurement.
        start: its value before training.
        best: the lowest value that any run of the search reached.
        progress: the share of the way from start to best, above 0 and below 1.
    """

    metric: str
    start: float
    best: float
    progress: float

    @property
    def level(self) -> float:
        """The value to reach.

        >>> Target("objective", 10.0, 2.0, 0.75).level
        4.0
        """
        return self.start - self.progress * (self.start - self.best)


def check_aim(aim: str) -> Aim:
    """The aim of this name; a `ConfigError` suggests the nearest if there is none."""
    for known in AIMS:
        if known == aim:
            return known
    raise ConfigError(f'There is no objective "{aim}". {did_you_mean(aim, AIMS)}')


def find_target(metric: str, runs: Iterable[TrialRun], progress: float) -> Target | None:
    """The target by what any of these runs reached; None if all are where they started.

    Runs that diverged do not count, however low they were before.
    """
    start, best = inf, inf
    for run in runs:
        losses = run.known_losses
        start = float(losses[0])
        if run.verdict != "diverged":
            best = min(best, float(losses.min()))
    return Target(metric, start, best, progress) if best < start else None


def place_of_target(run: TrialRun, level: float) -> int | None:
    """The measurement from which on the run stays at or below the level; None if it does not, or if it diverged.

    The first one below it would do for curves without noise. With noise, a large rate touches any level early by chance
    and is above it again at the next update.
    """
    above = np.flatnonzero(~(run.known_losses <= level))
    place = int(above[-1]) + 1 if len(above) else 0
    return None if run.verdict == "diverged" or place == len(run.loss) else place


def cost_of_target(run: TrialRun, level: float, axis: Axis) -> float:
    """What the run had spent when it reached the level for good: seconds, bytes or joules; NaN if it did not."""
    place = place_of_target(run, level)
    return float("nan") if place is None else float(_column(run, axis)[place])


def total_cost(run: TrialRun, axis: Axis, budget: float) -> float:
    """What the whole run spent; of time, the budget."""
    if axis == "elapsed":
        return budget
    return float(run.total_bytes if axis == "bytes" else run.total_energy)


def score(runs: Sequence[TrialRun], target: Target, aim: Aim, budget: float, whole: bool) -> float:
    """The mean over runs of the logarithm of what reaching the target cost; less is better.

    A run that did not reach it is given the cost it would have had if its distance to the best went on falling
    exponentially, `cost * log(1 - progress) / log(1 - reached)`. After a whole budget it ranks below all that did.

    Args:
        runs: of the same settings over several seeds.
        target: what is to be reached.
        aim: what counts.
        budget: the virtual seconds of each run.
        whole: whether these seconds are the whole budget, so that there was no more time to reach the target.

    Returns:
        The score.
    """
    return float(np.mean([_score(run, target, aim, budget, whole) for run in runs]))


def _score(run: TrialRun, target: Target, aim: Aim, budget: float, whole: bool) -> float:
    if run.verdict == "diverged":
        return WORTHLESS
    if aim == "worst_clients":
        return WORTHLESS if run.worst_loss is None else log(max(run.worst_loss, 1e-300))
    axis = AXIS_OF[aim]
    cost = cost_of_target(run, target.level, axis)
    reached = (target.start - float(run.known_losses.min())) / (target.start - target.best)
    left = 1.0 - min(max(reached, LEAST_PROGRESS), 1.0 - LEAST_PROGRESS)
    tie = TIE * log(left)
    if cost == cost:
        return log(max(cost, 1e-12)) + tie
    slowdown = log(1.0 - target.progress) / log(left)
    return log(max(total_cost(run, axis, budget), 1e-12) * max(1.0, slowdown)) + tie + (MISSED if whole else 0.0)


def _column(run: TrialRun, axis: Axis) -> tuple[float, ...] | tuple[int, ...]:
    return run.elapsed if axis == "elapsed" else run.bytes if axis == "bytes" else run.energy
