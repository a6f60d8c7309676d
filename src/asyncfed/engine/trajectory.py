"""The path of a recorded run, version by version: how far from a point the model was, and what was merged into it.

The journal holds no models, so its inputs are replayed and the models looked at as they pass.
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
    """`distances[t]` is |x_t − centre|, t = 0 … the last version; `averages[t]` see `follow`."""

    def __init__(self, steps: list[MergedStep], distances: np.ndarray, averages: dict[int, np.ndarray]) -> None:
        self.steps = steps
        self.distances = distances
        self.averages = averages

    @property
    def largest_staleness(self) -> int:
        """Versions merged between a download and its merge, at the most."""
        return max((t - k.base_version for t, step in enumerate(self.steps) for k in step.tickets), default=0)


def follow(
    problem: Problem,
    plan: Plan,
    recorded: Journal,
    centre: np.ndarray,
    contraction: float | None = None,
    averages_at: Callable[[int], bool] = lambda version: False,
    watch: Callable[[int], None] | None = None,
) -> Trajectory:
    """Replay a journal and look at every version.

    With a `contraction` r below 1, `averages[T]` is the mean of x_0 … x_T under weights r^−(t+1), which is what bounds
    on averaged models speak of, kept for the versions T that `averages_at` names.
    """
    key = purpose_key(plan.seed, "train")
    steps: list[MergedStep] = []
    distances: list[float] = []
    mean = _GrowingMean(contraction)
    averages: dict[int, np.ndarray] = {}

    def look(params: np.ndarray) -> None:
        version = len(distances)
        distances.append(float(np.linalg.norm(params.astype(np.float64) - centre)))
        if contraction is not None:
            average = mean.next(params)
            if averages_at(version):
                averages[version] = average.copy()

    def onlooker(execution: Execution, merge: Merge) -> None:
        look(execution.vectors.params)
        steps.append(_step(execution, merge, key))

    again = Journal.create(None, {})
    for reports in replay(problem, plan, recorded.event_rows(), again, onlooker):
        if watch is not None:
            watch(reports)
    checkpoint = again.checkpoint()
    if checkpoint is None:
        raise JournalError("The journal holds no run that could be followed.")
    look(checkpoint[1]["params"])
    return Trajectory(steps, np.array(distances), averages)


class _GrowingMean:
    """The mean of all models seen under weights r^−(t+1), without the weights' overflow: S ← r S + 1, step 1/S."""

    def __init__(self, contraction: float | None) -> None:
        self._contraction = contraction or 1.0
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
    shares = tuple(n / settings["total"] for n in settings["shares"]) if rule == LatestAverage.name else ()
    return MergedStep(merge.keep, merge.of, tickets, rule, shares)
