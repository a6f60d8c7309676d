"""Replay: a journal's inputs handed to a new server, every training done again, every decision made again.

The clock is the journal: reports, losses, joins and leaves come when it says they came. If the journal is genuine and
the training deterministic, the replay writes the same events and ends at the same model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.core.types import Dispatch, Report
from asyncfed.engine.execution import Execution, MergeObserver
from asyncfed.engine.execution_setup import set_up
from asyncfed.engine.plan import Plan
from asyncfed.engine.training import LateTraining
from asyncfed.problems.protocol import Problem
from asyncfed.store.journal import Journal
from asyncfed.store.schema import JOIN, LEAVE, LOST, REFUSED, REPORT, STOP

Row = tuple[Any, ...]
Step = Callable[[Row], None]


def replay(
    problem: Problem, plan: Plan, recorded: Iterable[Row], journal: Journal, observer: MergeObserver | None = None
) -> Iterator[int]:
    """Write to `journal` what the recorded events lead to. Yields the number of reports done, for a progress bar.

    The `observer` is shown every merge just before it is carried out. Raises `JournalError` at the first recorded input
    that cannot have happened.
    """
    execution = set_up(problem, plan, journal)
    if observer is not None:
        execution.on_merge = partial(observer, execution)
    training = LateTraining(problem, execution.vectors, plan.seed, plan.threads)
    handed_out_at: dict[int, float] = {}

    def note(dispatch: Dispatch) -> None:
        training.pending[dispatch.ticket] = dispatch
        handed_out_at[dispatch.ticket] = execution.now

    execution.on_dispatch = note
    execution.start()

    def train(ticket: int) -> None:
        if ticket not in execution.vectors.trained:
            training.train_all()

    steps, reports = steps_of(execution, problem.num_examples.tolist(), train), 0
    for row in recorded:
        step = steps.get(row[2])
        if step is None:
            continue  # a decision: the new server makes its own
        execution.now = row[1]
        _take(step, row, execution, handed_out_at)
        reports += row[2] == REPORT
        yield reports
    if execution.server.stopped is not None:
        execution.conclude()
    journal.commit(execution.snapshot(), execution.vectors.dump())


def steps_of(execution: Execution, examples: list[int], train: Callable[[int], None]) -> dict[int, Step]:
    """What each kind of recorded input leads to. `train` sees to it that a ticket's model is in `vectors.trained`."""
    return {
        REPORT: lambda row: _report(execution, examples, train, row),
        LOST: lambda row: execution.lose(row[3], row[6], row[7], _text(row)),
        JOIN: lambda row: execution.join(row[4], int(row[6])),
        LEAVE: lambda row: execution.leave(row[4], _text(row)),
        STOP: lambda row: _stop(execution, json.loads(row[8])),
        REFUSED: lambda row: execution.refuse(row[3], row[4], bool(row[6]), json.loads(row[8])),
    }


def _text(row: Row) -> str | None:
    return None if row[8] is None else str(json.loads(row[8]))


def _take(step: Step, row: Row, execution: Execution, handed_out_at: dict[int, float]) -> None:
    stopped = execution.server.stopped is not None
    if stopped and row[2] != STOP:
        raise JournalError(f"event {row[0]} comes after the run had stopped; the journal was tampered with or mixed.")
    try:
        if row[2] in (REPORT, LOST):
            _check_duration(row, handed_out_at.pop(row[3], 0.0))  # a ticket that is not out is for the server to refuse
        step(row)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise JournalError(f"event {row[0]} cannot have happened in this run ({error!r}).") from error


def _check_duration(row: Row, handed_out: float) -> None:
    """Work may begin late, in a client's queue, but it cannot have taken longer than its ticket was out.

    Most durations enter no other number of a run (a round tells of its longest and shortest only), so that comparing
    results would let a changed one pass.
    """
    time, duration = row[1], row[6]
    rounding = 1e-9 * time
    if not 0.0 <= duration <= time - handed_out + rounding:
        raise ValueError(f"it says {duration:g} s of a ticket that was handed out {time - handed_out:g} s before")


def _report(execution: Execution, examples: list[int], train: Callable[[int], None], row: Row) -> None:
    _, time, _, ticket, client, _, duration, energy, detail = row
    dispatch: Dispatch = execution.dispatches[ticket]
    train(ticket)
    if dispatch.work.start == "own":
        execution.vectors.own[client] = execution.vectors.trained[ticket]
    metrics = None if detail is None else json.loads(detail)
    execution.receive(Report(ticket, client, time, duration, examples[client], metrics), energy)


def _stop(execution: Execution, reason: str) -> None:
    if execution.server.stopped is None:
        execution.halt(reason)
