"""One run of the study, until it reaches the target: what it had sent and how long it had taken, as its loss fell."""

from __future__ import annotations

from math import isfinite

import numpy as np

from asyncfed.core.errors import AsyncFedError
from asyncfed.core.record import Record
from asyncfed.core.types import Merge
from asyncfed.engine.execution import Execution
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.simulate import simulate

MOST_POINTS = 60
"""Measurements of a run that are kept, besides the first and the last."""


class Target(Record):
    """What a run has to reach: `level = least + remaining * (start - least)`.

    Args:
        start: the loss, the mean of the clients', of the first model.
        least: the loss of the optimum; 0 where it is not known.
        remaining: the share of the way that is left at the target.
    """

    start: float
    least: float
    remaining: float

    @property
    def level(self) -> float:
        """The loss to reach."""
        return self.least + self.remaining * (self.start - self.least)

    def left(self, loss: float) -> float:
        """The share of the way that is left at this loss."""
        return (loss - self.least) / (self.start - self.least)


class Point(Record):
    """A measurement, and what the run had cost by then.

    Args:
        seconds: virtual time.
        bytes_up: bytes that clients had sent.
        bytes_down: bytes that they had been sent.
        uploads: updates that had been sent and merged.
        left: the share of the way to the least loss that was left.
        accuracy: on held-out rows; None where there are none.
    """

    seconds: float
    bytes_up: int
    bytes_down: int
    uploads: int
    left: float
    accuracy: float | None


class RunOutcome(Record):
    """What the study keeps of a run.

    Args:
        verdict: "reached"; "never", of a run whose updates were spent before; "diverged"; "refused", of settings that
            are not accepted; "failed", of an error in the program.
        reason: why, of the last three.
        points: the first measurement, some in between and the last: where the target was reached, if it was.
        least_left: the least share of the way that was left at any measurement; None if there was none.
    """

    verdict: str
    reason: str
    points: tuple[Point, ...]
    least_left: float | None

    @property
    def reached(self) -> Point | None:
        """The measurement at which the target was reached; None if it never was."""
        return self.points[-1] if self.verdict == "reached" else None


def find_target(problem: Problem, seed: int, remaining: float) -> Target:
    """The target that follows from a problem's first model and its optimum."""
    optimum = problem.optimum()
    least = 0.0 if optimum is None else problem.evaluate(optimum)["objective"]
    return Target(problem.evaluate(problem.init(seed))["objective"], least, remaining)


def run_to_target(experiment: Experiment, problem: Problem, target: Target) -> RunOutcome:
    """Simulate a run, which stops at the target, and keep what it cost.

    Args:
        experiment: the run, with the target's level in its `stopping`.
        problem: what it learns.
        target: what it has to reach.
    """
    spent = SpentByVersion()
    try:
        with np.errstate(all="ignore"):  # errors of runs that diverge
            run = simulate(experiment, problem=problem, threads=1, observer=spent.before_merge)
    except AsyncFedError as error:
        return RunOutcome("refused", str(error), (), None)
    except Exception as error:
        return RunOutcome("failed", f"{type(error).__name__}: {error}", (), None)
    try:
        points = spent.points(run.journal.evaluation_columns(), target)
        verdict, reason = run.verdict, run.reason
    finally:
        run.journal.close()
    if verdict != "finished" or not points or not isfinite(points[-1].left):
        return RunOutcome("diverged", reason, tuple(_thinned(_finite(points))), _least(points))
    word = "reached" if points[-1].left <= target.remaining else "never"
    return RunOutcome(word, "", tuple(_thinned(points)), _least(points))


class SpentByVersion:
    """What a run had cost when each version of its model was made: time, bytes and uploads."""

    def __init__(self) -> None:
        self._spent: dict[int, tuple[float, int, int, int]] = {0: (0.0, 0, 0, 0)}
        self._uploads = self._version = 0

    def before_merge(self, execution: Execution, merge: Merge) -> None:
        """Note it for the version that this merge makes: every merge makes one, the first model being version 0."""
        self._version += 1
        self._uploads += len(merge.tickets)
        ledger = execution.ledger
        self._spent[self._version] = (execution.now, ledger.bytes_up, ledger.bytes_down, self._uploads)

    def points(self, measured: dict[str, list[float | None]], target: Target) -> list[Point]:
        """The run's measurements, by column, with what it had cost at each."""
        nothing = [None] * len(measured["objective"])
        columns = (measured["version"], measured["objective"], measured.get("test_accuracy", nothing))
        return [
            Point(*self._spent[int(version or 0)], float("nan") if loss is None else target.left(loss), accuracy)
            for version, loss, accuracy in zip(*columns, strict=True)
        ]


def _finite(points: list[Point]) -> list[Point]:
    return [point for point in points if isfinite(point.left)]


def _least(points: list[Point]) -> float | None:
    return min((point.left for point in _finite(points)), default=None)


def _thinned(points: list[Point]) -> list[Point]:
    """The first and the last, and so many in between, evenly spaced."""
    places = np.unique(np.linspace(0, len(points) - 1, MOST_POINTS + 2).round().astype(int)) if points else ()
    return [points[place] for place in places]
