"""Verifying a finished run: its file against its own digests, and against a replay of its journal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asyncfed.core.errors import JournalError, ProtocolError
from asyncfed.core.record import replace
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.plan import Plan
from asyncfed.engine.replay import replay
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.cores import thread_count
from asyncfed.runs.given_problem import stored_problem
from asyncfed.runs.header import check_same_problem, same_experiment
from asyncfed.runs.result import RecordedRun, load_run
from asyncfed.store.journal import Journal


class Verification(NamedTuple):
    """What `verify` found.

    Args:
        ok: True if the file is as the run left it and a replay gives the same.
        lines: a sentence for each check.
    """

    ok: bool
    lines: tuple[str, ...]


def verify(
    path: Path | str,
    *,
    experiment: Experiment | None = None,
    problem: Problem | None = None,
    threads: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> Verification:
    """Check a finished run's file against its own seal, then against a replay of its journal; see `asyncfed.verify`."""
    recorded = load_run(path, experiment)
    with closing(recorded.journal):
        return _verify(recorded, experiment, problem, threads, watch)


def _verify(
    recorded: RecordedRun,
    experiment: Experiment | None,
    problem: Problem | None,
    threads: int | None,
    watch: Callable[[int], None] | None,
) -> Verification:
    path = str(recorded.path)
    if not recorded.finished:
        raise JournalError(f"{path} is not finished, so there is nothing to compare. First `asyncfed resume {path}`.")
    experiment = same_experiment(recorded.header, experiment, recorded.path)
    problem = stored_problem(experiment, problem)
    check_same_problem(recorded.header, problem, path)
    intact = recorded.sha256 == recorded.header["sha256"]
    lines = ["the file agrees with its seal" if intact else "THE FILE WAS CHANGED after the run: it breaks its seal"]
    again = Journal.create(None, {})
    kept: list[int] = []

    def released(ticket: int) -> dict[str, np.ndarray] | None:
        message = recorded.journal.released_message(ticket)
        if message is not None:
            kept.append(ticket)
        return message

    try:
        plan = replace(recorded_plan(recorded.header, experiment, threads), evaluation=_without_drift(experiment))
        for reports in replay(problem, plan, recorded.journal.event_rows(), again, released=released):
            if watch is not None:
                watch(reports)
    except (JournalError, ProtocolError) as error:
        return Verification(False, (*lines, f"THE JOURNAL CANNOT BE REPLAYED: {error}"))
    if kept:
        lines.append(f"{len(kept)} messages hold noise of their clients' own: taken from the file, not trained again")
    parts = _compare(recorded, RecordedRun(again))
    lines += [f"{part}: {'the same' if same else 'NOT THE SAME'} when replayed" for part, same in parts.items()]
    return Verification(intact and all(parts.values()), tuple(lines))


def recorded_plan(header: dict[str, Any], experiment: Experiment, threads: int | None) -> Plan:
    """The run's plan; of a live run the file also says who was not there at the start."""
    absent = header.get("live", {}).get("absent", ())
    return replace(experiment.plan(thread_count(threads), header["num_clients"]), absent=tuple(absent))


def _without_drift(experiment: Experiment) -> Evaluation:
    return replace(experiment.evaluation, drift=False)


def _compare(recorded: RecordedRun, replayed: RecordedRun) -> dict[str, bool]:
    """Which parts of a run agree. Evaluations may have been made at other moments too; those of both are compared."""
    parts = {part: digest == recorded.sha256[part] for part, digest in replayed.sha256.items()}
    before, after = recorded.rounds, replayed.rounds
    parts["rounds"] = all(np.array_equal(before[name], after[name]) for name in after)
    before, after = recorded.evaluations, replayed.evaluations
    _, ours, theirs = np.intersect1d(before["updates"], after["updates"], return_indices=True)
    parts["evaluations"] = len(ours) > 0 and all(
        np.array_equal(before[name][ours], after[name][theirs], equal_nan=True) for name in after if name in before
    )
    return parts
