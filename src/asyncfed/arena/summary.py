"""What the page, the tables and the picture show of the arena's results: a row for each cell and strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from asyncfed.analysis.statistics import Interval, geometric_interval
from asyncfed.arena.arena import BASELINE, ArenaResults
from asyncfed.arena.cells import Cell
from asyncfed.arena.entry import Entry
from asyncfed.arena.measured_run import RunOutcome
from asyncfed.arena.ranking import Standing, nemenyi_factor, rank_strategies
from asyncfed.core.record import Record

Measure: TypeAlias = Literal["time", "bytes", "energy", "worst_time"]
MEASURES: tuple[Measure, ...] = ("time", "bytes", "energy", "worst_time")
_READ: dict[Measure, Callable[[RunOutcome], float | None]] = {
    "time": lambda run: run.time,
    "bytes": lambda run: run.bytes,
    "energy": lambda run: run.energy,
    "worst_time": lambda run: run.worst_time,
}


class MeasureSummary(Record):
    """One measure of a strategy in a cell.

    Args:
        reached: how many runs reached the target.
        cost: the geometric mean over seeds and its 95 % interval, if all runs reached it; else None.
        ratio: the same of the ratio to the baseline, seed by seed, if all runs of both reached it; else None.
        to_best: the geometric mean over that of the best strategy in the cell, missed runs counted as in the ranks;
            None if no run reached the target.
        standing: its rank and group.
    """

    reached: int
    cost: Interval | None
    ratio: Interval | None
    to_best: float | None
    standing: Standing


class Row(Record):
    """A strategy in a cell.

    Args:
        entry: what was computed.
        verdict: "reached" if all runs reached the target, "partly reached", or what most of the others ended with.
        reason: why runs did not, where one has a reason.
        left: the median over seeds of the least share of the way that was left; None if it is not known.
        measures: by name.
    """

    entry: Entry
    verdict: str
    reason: str
    left: float | None
    measures: dict[str, MeasureSummary]


class Overall(Record):
    """A strategy over all cells, by one measure.

    Args:
        strategy: its name.
        mean_rank: over cells.
        together: whether its mean rank is within the critical difference of the best one's.
        cells_reached: in how many cells all its runs reached the target.
        first_groups: in how many cells it is in the first group.
        median_to_best: the median over cells of its cost over the best one's; None where it missed too often.
    """

    strategy: str
    mean_rank: float
    together: bool
    cells_reached: int
    first_groups: int
    median_to_best: float | None


def summarise(results: ArenaResults) -> list[Row]:
    """A row for each entry, in their order."""
    by_cell: dict[Cell, list[Entry]] = {}
    for entry in results.entries:
        by_cell.setdefault(entry.cell, []).append(entry)
    rows = []
    for entries in by_cell.values():
        columns = {measure: _measure_cell(entries, measure) for measure in MEASURES}
        for entry in entries:
            measures: dict[str, MeasureSummary] = {name: column[entry.strategy] for name, column in columns.items()}
            rows.append(Row(entry, *_verdict(entry), _median_left(entry), measures))
    return rows


def overall(rows: Sequence[Row], measure: Measure = "time") -> list[Overall]:
    """Every strategy over all cells, the best mean rank first."""
    of: dict[str, list[MeasureSummary]] = {}
    for row in rows:
        of.setdefault(row.entry.strategy, []).append(row.measures[measure])
    ranks = {name: float(np.mean([one.standing.rank for one in some])) for name, some in of.items()}
    num_cells = max((len(some) for some in of.values()), default=1)
    limit = min(ranks.values(), default=0.0) + nemenyi_factor(len(of)) / num_cells**0.5
    return [
        Overall(
            name,
            ranks[name],
            ranks[name] <= limit,
            sum(one.cost is not None for one in of[name]),
            sum(one.standing.group == 1 for one in of[name]),
            _median_ratio([one.to_best for one in of[name]]),
        )
        for name in sorted(of, key=lambda name: (ranks[name], name))
    ]


def _median_ratio(ratios: Sequence[float | None]) -> float | None:
    known = float(np.median([np.inf if ratio is None else ratio for ratio in ratios]))
    return known if np.isfinite(known) else None


def _measure_cell(entries: Sequence[Entry], measure: Measure) -> dict[str, MeasureSummary]:
    """One measure of all strategies of a cell."""
    costs = {entry.strategy: [_READ[measure](run) for run in entry.runs] for entry in entries}
    reached = {name: sum(cost is not None for cost in values) for name, values in costs.items()}
    most = _counted_if_missed(entries, measure, costs)
    filled = {name: np.array([most if v is None else v for v in values], float) for name, values in costs.items()}
    logs = {name: np.log(np.maximum(values, 1e-12)) for name, values in filled.items()}
    standings = rank_strategies(logs, reached)
    best = min((float(np.mean(logs[name])) for name in logs if reached[name]), default=0.0)
    complete = {name for name, values in costs.items() if reached[name] == len(values)}
    found = {}
    for name in costs:
        ratio = filled[name] / filled[BASELINE] if name in complete and BASELINE in complete else None
        found[name] = MeasureSummary(
            reached[name],
            geometric_interval(filled[name]) if name in complete else None,
            None if ratio is None else geometric_interval(ratio),
            float(np.exp(np.mean(logs[name]) - best)) if reached[name] else None,
            standings[name],
        )
    return found


def _counted_if_missed(entries: Sequence[Entry], measure: Measure, costs: dict[str, list[float | None]]) -> float:
    """What a run that missed the target counts in ranks: the time it had, or the most that any that reached it cost."""
    known = [cost for values in costs.values() for cost in values if cost is not None]
    limits = [entry.limit for entry in entries if entry.limit is not None]
    most = max(known, default=1.0)
    return max([most, *limits]) if measure in ("time", "worst_time") else most


def _verdict(entry: Entry) -> tuple[str, str]:
    words = Counter(run.verdict for run in entry.runs)
    reason = next((run.reason for run in entry.runs if run.reason), "")
    if len(words) == 1:
        return entry.runs[0].verdict, reason
    if words["reached"]:
        return "partly reached", reason
    return words.most_common(1)[0][0], reason


def _median_left(entry: Entry) -> float | None:
    known = [run.left for run in entry.runs if run.left is not None]
    return float(np.median(known)) if known else None
