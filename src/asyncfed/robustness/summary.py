"""What the page, the tables and the picture show of the study: each cell against the honest run, and break points."""

from __future__ import annotations

from collections.abc import Sequence

from asyncfed.analysis.statistics import Interval, geometric_interval, mean_interval
from asyncfed.core.record import Record, to_plain
from asyncfed.robustness.defences import DEFENCES
from asyncfed.robustness.measured_run import RunOutcome, UpdateCounts
from asyncfed.robustness.problems import PROBLEMS
from asyncfed.robustness.scenarios import HONEST, Cell, Scenario
from asyncfed.robustness.study import CellResult, StudyResults

MOST_RATIO = 2.0
"""A defence holds if it ends with at most so many times the honest run's excess loss."""

MOST_POINTS = 3.0
"""Of a network: if its accuracy is at most so many points below the honest run's."""


class Row(Record):
    """A cell of the study, compared with the honest run: the same strategy, undefended, with nobody lying.

    Args:
        result: what was computed.
        verdict: "held"; "not held"; or how runs ended, where not all finished: "diverged", "refused", "failed".
        reason: why, where a run has a reason.
        ratio: of the excess loss to the honest run's, the geometric mean over seeds and its 95 % interval; None where
            not all runs finished.
        points: how many points of accuracy the honest run is ahead, the mean over seeds; None where that is not known.
        lying_arrived: the share of the updates that arrived which liars had sent, of all seeds together.
        lying_merged: the same share of those that were merged; None if none was.
        precision: the share of the filtered updates that were liars'; None if none was filtered.
        recall: the share of the liars' updates that were filtered; None if nothing was filtered or nobody lied.
        filtered_honest: the share of the honest clients' updates that were filtered.
    """

    result: CellResult
    verdict: str
    reason: str
    ratio: Interval | None
    points: Interval | None
    lying_arrived: float
    lying_merged: float | None
    precision: float | None
    recall: float | None
    filtered_honest: float

    @property
    def cell(self) -> Cell:
        """The cell."""
        return self.result.cell

    @property
    def held(self) -> bool:
        """Whether the defence held."""
        return self.verdict == "held"


class BreakPoint(Record):
    """The largest share of liars at which a defence still holds, as it does at all smaller ones that were run.

    Args:
        scenario: where.
        defence: which.
        attack: against which.
        share: the share; None if it does not even hold with nobody lying.
        most: the largest share that was run: at it the true break point may be higher.
    """

    scenario: Scenario
    defence: str
    attack: str
    share: float | None
    most: float


class Cost(Record):
    """What a defence costs when nobody lies, against the same strategy undefended; paired by seed.

    Args:
        scenario: where.
        defence: which.
        time: the ratio of the virtual times to the target, its geometric mean and interval; None if not all runs of
            both reached it.
        level: the ratio of the excess losses at the end; None if not all runs finished.
        points: points of accuracy lost; None where there is none.
        filtered: the share of the updates, all of them honest, that were filtered.
    """

    scenario: Scenario
    defence: str
    time: Interval | None
    level: Interval | None
    points: Interval | None
    filtered: float


def summarise(results: StudyResults) -> list[Row]:
    """A row for each cell, in the order of the plan."""
    honest = {(one.cell.scenario, one.cell.defence): one.runs for one in results.cells if one.cell.attack == HONEST}
    return [_row(one, honest[one.cell.scenario, DEFENCES[one.cell.defence].base]) for one in results.cells]


def break_points(rows: Sequence[Row]) -> list[BreakPoint]:
    """Of each defence against each attack in each scenario, in the order of the rows."""
    honest = {(row.cell.scenario, row.cell.defence): row for row in rows if row.cell.attack == HONEST}
    lying: dict[tuple[Scenario, str, str], list[Row]] = {}
    for row in rows:
        if row.cell.attack != HONEST:
            lying.setdefault((row.cell.scenario, row.cell.defence, row.cell.attack), []).append(row)
    found = []
    for (scenario, defence, attack), some in lying.items():
        share = 0.0 if honest[scenario, defence].held else None
        for row in sorted(some, key=lambda one: one.cell.share):
            if share is None or not row.held:
                break
            share = row.cell.share
        found.append(BreakPoint(scenario, defence, attack, share, max(row.cell.share for row in some)))
    return found


def costs(rows: Sequence[Row]) -> list[Cost]:
    """What each defence costs in each scenario when nobody lies."""
    honest = {(row.cell.scenario, row.cell.defence): row for row in rows if row.cell.attack == HONEST}
    found = []
    for (scenario, defence), row in honest.items():
        base = honest[scenario, DEFENCES[defence].base].result.runs
        pairs = [(own.target_time, other.target_time) for own, other in zip(row.result.runs, base, strict=True)]
        ratios = [own / other for own, other in pairs if own is not None and other is not None and other > 0]
        time = geometric_interval(ratios) if len(ratios) == len(pairs) else None
        found.append(Cost(scenario, defence, time, row.ratio, row.points, row.filtered_honest))
    return found


def _row(result: CellResult, honest: Sequence[RunOutcome]) -> Row:
    runs = result.runs
    counts = _sum([run.counts for run in runs])
    ratio, points = _ratio(runs, honest), _points(runs, honest)
    unfinished = [run for run in runs if run.verdict != "finished"]
    if unfinished:
        verdict = unfinished[0].verdict
    elif PROBLEMS[result.cell.scenario.problem].judged_by == "accuracy":
        verdict = "held" if points is not None and points.mean <= MOST_POINTS else "not held"
    else:
        verdict = "held" if ratio is not None and ratio.mean <= MOST_RATIO else "not held"
    honest_arrived = counts.arrived - counts.lying_arrived
    return Row(
        result,
        verdict,
        next((run.reason for run in unfinished), ""),
        ratio,
        points,
        _share(counts.lying_arrived, counts.arrived) or 0.0,
        _share(counts.lying_merged, counts.merged),
        _share(counts.lying_filtered, counts.filtered),
        _share(counts.lying_filtered, counts.lying_arrived) if counts.filtered else None,
        _share(counts.filtered - counts.lying_filtered, honest_arrived) or 0.0,
    )


def _ratio(runs: Sequence[RunOutcome], honest: Sequence[RunOutcome]) -> Interval | None:
    ratios = [
        own.excess / other.excess
        for own, other in zip(runs, honest, strict=True)
        if own.excess is not None and other.excess is not None and other.excess > 0
    ]
    return geometric_interval(ratios) if len(ratios) == len(runs) else None


def _points(runs: Sequence[RunOutcome], honest: Sequence[RunOutcome]) -> Interval | None:
    points = [
        100 * (other.accuracy - own.accuracy)
        for own, other in zip(runs, honest, strict=True)
        if own.accuracy is not None and other.accuracy is not None
    ]
    return mean_interval(points) if len(points) == len(runs) else None


def _sum(counts: Sequence[UpdateCounts]) -> UpdateCounts:
    columns = zip(*(to_plain(one).values() for one in counts), strict=True)
    return UpdateCounts(*map(sum, columns))


def _share(part: int, of: int) -> float | None:
    return part / of if of else None
