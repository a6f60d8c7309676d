"""One run of the study, and what is kept of it: where it ended, and whose updates were merged and filtered."""

from __future__ import annotations

import json
from collections.abc import Collection
from math import isfinite
from typing import Any

import numpy as np

from asyncfed.core.errors import AsyncFedError
from asyncfed.core.record import Record
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.simulate import simulate
from asyncfed.store.journal import Journal
from asyncfed.store.schema import DROP, MERGE, REPORT

TAIL = 0.2
"""The last share of a run's time, over whose measurements its level is a mean."""

FILTERED = "filtered/"
"""How rules begin the name under which they write down the score of a ticket that they left out."""


class UpdateCounts(Record):
    """Whose updates arrived, were merged, and were filtered: dropped on arrival, or left out of a merge.

    Args:
        arrived: updates that arrived.
        lying_arrived: of these, those of liars.
        merged: updates that counted in a merge.
        lying_merged: of these, those of liars.
        filtered: updates that were filtered.
        lying_filtered: of these, those of liars.
    """

    arrived: int = 0
    lying_arrived: int = 0
    merged: int = 0
    lying_merged: int = 0
    filtered: int = 0
    lying_filtered: int = 0


class RunOutcome(Record):
    """What the study keeps of a run. Losses are those of the honest clients.

    Args:
        verdict: "finished"; "diverged"; "refused", of settings that are not accepted; "failed", of an error in the
            program.
        reason: why, unless it finished.
        start: the loss of the first model above the optimum's; of a network, which has no known optimum, above 0.
        excess: the same at the end, a mean over the last `TAIL` of the run; None if it diverged or was not run.
        accuracy: on held-out rows at the end, a mean over the same time; None where there are none.
        target_time: virtual seconds until a given share of `start` was left; None if that was never so.
        counts: whose updates they were.
    """

    verdict: str
    reason: str
    start: float | None
    excess: float | None
    accuracy: float | None
    target_time: float | None
    counts: UpdateCounts


def measure_run(
    experiment: Experiment, problem: Problem, least: float, liars: Collection[int], remaining: float
) -> RunOutcome:
    """Simulate a run and measure it.

    Args:
        experiment: the run.
        problem: what it learns, with its liars.
        least: the objective of the honest clients' optimum, or 0 where it is not known.
        liars: the clients that lie.
        remaining: the share of the way that is left at the target.
    """
    try:
        with np.errstate(all="ignore"):  # errors of runs that diverge
            run = simulate(experiment, problem=problem, threads=1)
    except AsyncFedError as error:
        return _without_run("refused", str(error))
    except Exception as error:
        return _without_run("failed", f"{type(error).__name__}: {error}")
    try:
        seconds = experiment.budget.elapsed or 0.0
        counts = count_updates(run.journal, liars)
        measured = run.journal.evaluation_columns()
        return outcome_of(measured, run.verdict, run.reason, least, seconds, remaining, counts)
    finally:
        run.journal.close()


def outcome_of(
    measured: dict[str, list[Any]],
    verdict: str,
    reason: str,
    least: float,
    seconds: float,
    remaining: float,
    counts: UpdateCounts,
) -> RunOutcome:
    """What a run's measurements, by column, come to.

    Args:
        measured: `elapsed`, `objective` and, if there are held-out rows, `test_accuracy`.
        verdict: how it ended.
        reason: why.
        least: the objective of the optimum.
        seconds: how long the run was to take.
        remaining: the share of the way that is left at the target.
        counts: whose updates they were.
    """
    elapsed = np.array(measured["elapsed"], float)
    excess = np.array([np.nan if value is None else value for value in measured["objective"]], float) - least
    start = float(excess[0])
    reached = np.flatnonzero(excess <= remaining * start)
    tail = slice(min(int(np.searchsorted(elapsed, (1 - TAIL) * seconds)), len(elapsed) - 1), None)
    level = float(np.mean(excess[tail]))
    fine = verdict == "finished" and isfinite(level)
    accuracies = measured.get("test_accuracy")
    accuracy = float(np.mean(accuracies[tail])) if accuracies is not None and fine else None
    return RunOutcome(
        "finished" if fine else "diverged",
        "" if fine else reason,
        start,
        level if fine else None,
        accuracy,
        float(elapsed[reached[0]]) if len(reached) else None,
        counts,
    )


def count_updates(journal: Journal, liars: Collection[int]) -> UpdateCounts:
    """Whose updates arrived, were merged and were filtered, by a journal that is written."""
    owner: dict[int, int] = {}
    filtered: set[int] = set()
    merged: set[int] = set()
    for event in journal.event_rows():
        if event.kind == REPORT:
            owner[event.require_ticket()] = event.require_client()
        elif event.kind == DROP:
            filtered.add(event.require_ticket())
        elif event.kind == MERGE:
            if event.ticket is None or FILTERED in (event.detail or ""):
                detail = json.loads(event.detail or "{}")
                merged.update(detail.get("tickets", (event.ticket,)))
                names = detail.get("info", {})
                filtered.update(int(name.removeprefix(FILTERED)) for name in names if name.startswith(FILTERED))
            else:
                merged.add(event.ticket)
    merged -= filtered
    kinds = (owner, merged, filtered)
    numbers = [number for tickets in kinds for number in (len(tickets), sum(owner[t] in liars for t in tickets))]
    return UpdateCounts(*numbers)


def _without_run(verdict: str, reason: str) -> RunOutcome:
    return RunOutcome(verdict, reason, None, None, None, None, UpdateCounts())
