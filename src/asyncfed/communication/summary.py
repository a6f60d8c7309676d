"""What the page, the tables and the figures show of the study: each codec against sending everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from asyncfed.analysis.statistics import Interval, geometric_interval
from asyncfed.communication.cells import Cell
from asyncfed.communication.codecs import NO_CODEC
from asyncfed.communication.entry import Entry
from asyncfed.communication.measured_run import Point, RunOutcome
from asyncfed.communication.study import StudyResults
from asyncfed.core.record import Record

Measure: TypeAlias = Literal["bytes_up", "bytes", "uploads", "seconds"]
MEASURES: dict[Measure, tuple[str, Callable[[Point], float]]] = {
    "bytes_up": ("bytes up", lambda point: point.bytes_up),
    "bytes": ("bytes up and down", lambda point: point.bytes_up + point.bytes_down),
    "uploads": ("uploads", lambda point: point.uploads),
    "seconds": ("virtual seconds", lambda point: point.seconds),
}
"""What a run costs: in words, and as it is read from a measurement."""


class Saving(Record):
    """One measure of a cell.

    Args:
        cost: until the target, the geometric mean over seeds and its 95 % interval; None if not all runs reached it.
        ratio: how many times less it is than when everything is sent, paired by seed: above 1 is a saving. None if not
            all runs of both reached the target.
    """

    cost: Interval | None
    ratio: Interval | None


class Row(Record):
    """A codec with a strategy on a link.

    Args:
        cell: which.
        rate: the learning rate, the best of those that were tried.
        verdict: "reached" if all runs reached the target; "partly reached"; or what those that did not ended with.
        reason: why, where one has a reason.
        reached: how many runs reached it.
        runs: the outcome of each seed.
        least_left: the least share of the way that was left, the geometric mean over seeds and its interval.
        savings: by measure.
        uploads_at_same_rate: of a codec that does not send every training, how many times fewer uploads it needs at
            the problem's small rate than when everything is sent at the same rate, on the first link; None for others,
            or if not all of these runs reached the target.
    """

    cell: Cell
    rate: float
    verdict: str
    reason: str
    reached: int
    runs: tuple[RunOutcome, ...]
    least_left: Interval
    savings: dict[str, Saving]
    uploads_at_same_rate: Interval | None


def summarise(results: StudyResults) -> list[Row]:
    """A row for each entry and link, in the order of the plan."""
    whole = {
        (entry.request.problem, entry.request.strategy): entry
        for entry in results.entries
        if entry.request.codec == NO_CODEC
    }
    return [
        _row(entry, place, whole[entry.request.problem, entry.request.strategy].runs[place])
        for entry in results.entries
        for place in range(len(entry.request.links))
    ]


def _row(entry: Entry, place: int, whole: Sequence[RunOutcome]) -> Row:
    request, runs = entry.request, entry.runs[place]
    cell = Cell(request.problem, request.links[place], request.strategy, request.codec)
    missed = [run for run in runs if run.reached is None]
    verdict = "reached" if not missed else missed[0].verdict if len(missed) == len(runs) else "partly reached"
    lefts = [run.least_left for run in runs if run.least_left is not None]
    return Row(
        cell,
        entry.rate,
        verdict,
        next((run.reason for run in missed if run.reason), ""),
        len(runs) - len(missed),
        runs,
        geometric_interval(lefts),
        {measure: _saving(read, runs, whole) for measure, (_, read) in MEASURES.items()},
        _saving(MEASURES["uploads"][1], *entry.same_rate).ratio if entry.same_rate else None,
    )


def _saving(read: Callable[[Point], float], runs: Sequence[RunOutcome], whole: Sequence[RunOutcome]) -> Saving:
    own, others = ([None if run.reached is None else read(run.reached) for run in some] for some in (runs, whole))
    costs = [cost for cost in own if cost is not None]
    pairs = [(mine, theirs) for mine, theirs in zip(own, others, strict=True) if mine and theirs]
    return Saving(
        geometric_interval(costs) if len(costs) == len(runs) else None,
        geometric_interval([theirs / mine for mine, theirs in pairs]) if len(pairs) == len(runs) else None,
    )
