"""The path of a recorded run, version by version: how far from a point the model was, and what was merged into it.

A path is observed while the run goes on. The journal holds no models, so the path of a recorded run is that of its
replay.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from asyncfed.core.errors import JournalError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import Record
from asyncfed.core.types import Merge, Work
from asyncfed.engine.execution import Execution
from asyncfed.engine.plan import Plan
from asyncfed.engine.replay import replay
from asyncfed.problems.protocol import Problem
from asyncfed.rules.latest_average import LatestAverage
from asyncfed.store.journal import Journal


class MergedTicket(Record):
    """One update that was merged: whose, from which version, with which work and key, and what it counted."""

    ticket: int
    client: int
    base_version: int
    work: Work
    key: int
    weight: float


class MergedStep(Record):
    """One merge: version t became t + 1.

    `rule` names the vector rule that combined the payloads, None for the weighted sum; `shares` are, for the rule
    "latest_average", the tickets' shares of the mean.
    """

    keep: float
    of: str
    tickets: tuple[MergedTicket, ...]
    rule: str | None = None
    shares: tuple[float, ...] = ()


class Trajectory:
    """`distances[t]` is |x_t − centre|, t = 0 … the last version; `averages[t]` see `PathObserver`."""

    def __init__(self, steps: list[MergedStep], distances: np.ndarray, averages: dict[int, np.ndarray]) -> None:
        self.steps = steps
        self.distances = distances
        self.averages = averages

    @property
    def largest_staleness(self) -> int:
        """Versions merged between a download and its merge, at the most."""
        return max((t - k.base_version for t, step in enumerate(self.steps) for k in step.tickets), default=0)


class PathObserver:
    """Records the path of a run, as the observer of its merges in a simulation or a replay.

    Args:
        seed: the run's, from which the keys of its trainings follow.
        centre: the point that distances are measured from, (p,).
        contraction: r, above 0 and at most 1. With it, `averages[T]` of the trajectory is the mean of x_0 … x_T under
            weights r^−(t+1), the averaged model that theorems bound.
        averages_at: the versions T whose averages are kept; None for those at which the run is measured.
    """

    def __init__(
        self,
        seed: int,
        centre: np.ndarray,
        contraction: float | None = None,
        averages_at: Callable[[int], bool] | None = None,
    ) -> None:
        self._key = purpose_key(seed, "train")
        self._centre = centre
        self._mean = None if contraction is None else _GrowingMean(contraction)
        self._averages_at = averages_at
        self._steps: list[MergedStep] = []
        self._distances: list[float] = []
        self._averages: dict[int, np.ndarray] = {}

    def __call__(self, execution: Execution, merge: Merge) -> None:
        """Record the model just before it is changed, and the merge that changes it."""
        measured = execution.evaluated_at == execution.updates - len(merge.tickets)
        self._record(execution.vectors.params, measured)
        self._steps.append(_step(execution, merge, self._key))

    def trajectory(self, params: np.ndarray) -> Trajectory:
        """The whole path, ended by `params`, the run's last model."""
        self._record(params, measured=True)
        return Trajectory(self._steps, np.array(self._distances), self._averages)

    def _record(self, params: np.ndarray, measured: bool) -> None:
        version = len(self._distances)
        self._distances.append(float(np.linalg.norm(params.astype(np.float64) - self._centre)))
        if self._mean is not None:
            average = self._mean.next(params)
            if measured if self._averages_at is None else self._averages_at(version):
                self._averages[version] = average.copy()


def replay_trajectory(
    problem: Problem,
    plan: Plan,
    recorded: Journal,
    centre: np.ndarray,
    contraction: float | None = None,
    averages_at: Callable[[int], bool] | None = None,
    watch: Callable[[int], None] | None = None,
) -> Trajectory:
    """The path of a recorded run, by replaying its journal; see `PathObserver`. A run in progress is observed instead.

    `watch` is called with the number of reports that have been replayed.
    """
    observer = PathObserver(plan.seed, centre, contraction, averages_at)
    again = Journal.create(None, {})
    for reports in replay(problem, plan, recorded.event_rows(), again, observer, recorded.released_message):
        if watch is not None:
            watch(reports)
    checkpoint = again.checkpoint()
    if checkpoint is None:
        raise JournalError("The journal holds no run that could be followed.")
    return observer.trajectory(checkpoint[1]["params"])


class _GrowingMean:
    """The mean of all models seen under weights r^−(t+1), without the weights' overflow: S ← r S + 1, step 1/S."""

    def __init__(self, contraction: float) -> None:
        self._contraction = contraction
        self._sum = 0.0
        self._mean: np.ndarray | None = None

    def next(self, params: np.ndarray) -> np.ndarray:
        self._sum = self._contraction * self._sum + 1.0
        point = params.astype(np.float64)
        self._mean = point if self._mean is None else self._mean + (point - self._mean) / self._sum
        return self._mean


def _step(execution: Execution, merge: Merge, key: int) -> MergedStep:
    tickets = tuple(
        MergedTicket(t, d.client, d.base_version, d.work, draw_key(key, d.client, t), weight)
        for t, weight in zip(merge.tickets, merge.weights, strict=True)
        for d in [execution.dispatches[t]]
    )
    if merge.combiner is None:
        return MergedStep(merge.keep, merge.of, tickets)
    rule, settings = merge.combiner.name, dict(merge.combiner.settings)
    shares = tuple(n / (settings["total"] or 1) for n in settings["shares"]) if rule == LatestAverage.name else ()
    return MergedStep(merge.keep, merge.of, tickets, rule, shares)
