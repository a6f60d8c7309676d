"""Replay: a new server given a journal's inputs, every training done again, every decision made again.

The clock is the journal: reports, losses, joins and leaves come when it says they came. If the journal is genuine and
the training deterministic, the replay writes the same events and ends at the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from asyncfed.core.errors import JournalError
from asyncfed.core.types import Dispatch, Report
from asyncfed.engine.execution import Execution, MergeObserver
from asyncfed.engine.execution_setup import set_up
from asyncfed.engine.plan import Plan
from asyncfed.engine.training import LateTraining
from asyncfed.problems.protocol import Problem
from asyncfed.store.events import Event
from asyncfed.store.journal import Journal
from asyncfed.store.schema import JOIN, LEAVE, LOST, REFUSED, REPORT, STOP

INPUTS = frozenset({REPORT, LOST, JOIN, LEAVE, STOP, REFUSED})
"""Kinds of events that come from outside; all others are decisions, which a new server makes itself."""


def replay(
    problem: Problem,
    plan: Plan,
    recorded: Iterable[Event],
    journal: Journal,
    observer: MergeObserver | None = None,
) -> Iterator[int]:
    """Write to `journal` what the recorded inputs lead to.

    Args:
        problem: what was learnt, with its data.
        plan: the recorded run's plan.
        recorded: the recorded run's events.
        journal: a new journal.
        observer: called with every merge just before it is carried out.

    Yields:
        The number of reports done, after each input.

    Raises:
        JournalError: a recorded input cannot have happened.
    """
    execution = set_up(problem, plan, journal)
    if observer is not None:
        execution.on_merge = partial(observer, execution)
    training = LateTraining(problem, execution.vectors, plan.seed, plan.threads)
    dispatched_at: dict[int, float] = {}

    def note(dispatch: Dispatch) -> None:
        training.pending[dispatch.ticket] = dispatch
        dispatched_at[dispatch.ticket] = execution.now

    execution.on_dispatch = note
    execution.start()

    def train(ticket: int) -> None:
        if ticket not in execution.vectors.trained:
            training.train_all()

    examples, reports = problem.num_examples.tolist(), 0
    for event in recorded:
        if event.kind not in INPUTS:
            continue
        if execution.server.stopped is not None and event.kind != STOP:
            raise JournalError(
                f"event {event.seq} comes after the run had stopped; the journal was tampered with or mixed."
            )
        execution.now = event.time
        try:
            if event.kind in (REPORT, LOST):
                # A ticket that is not out is for the server to refuse.
                _check_duration(event, dispatched_at.pop(event.require_ticket(), 0.0))
            repeat_input(execution, event, examples, train)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise JournalError(f"event {event.seq} cannot have happened in this run ({error!r}).") from error
        reports += event.kind == REPORT
        yield reports
    if execution.server.stopped is not None:
        execution.conclude()
    journal.commit(execution.snapshot(), execution.vectors.dump())


def repeat_input(execution: Execution, event: Event, examples: list[int], train: Callable[[int], None]) -> None:
    """Let a recorded input happen once more.

    Args:
        execution: the run in which it happens.
        event: the input, of one of the kinds INPUTS.
        examples: how many rows each client has.
        train: called with a ticket before its report; must put its model into `execution.vectors.trained`.
    """
    if event.kind == REPORT:
        _repeat_report(execution, event, examples, train)
    elif event.kind == LOST:
        execution.lose(event.require_ticket(), event.duration, event.energy, event.reason)
    elif event.kind == JOIN:
        execution.join(event.require_client(), event.num_examples)
    elif event.kind == LEAVE:
        execution.leave(event.require_client(), event.reason)
    elif event.kind == REFUSED:
        execution.refuse(event.ticket, event.require_client(), event.is_fault, event.require_reason())
    elif event.kind == STOP and execution.server.stopped is None:
        execution.halt(event.require_reason())


def _repeat_report(execution: Execution, event: Event, examples: list[int], train: Callable[[int], None]) -> None:
    ticket, client = event.require_ticket(), event.require_client()
    dispatch = execution.dispatches[ticket]
    train(ticket)
    if dispatch.work.start == "own":
        execution.vectors.own[client] = execution.vectors.trained[ticket]
    report = Report(ticket, client, event.time, event.duration, examples[client], event.metrics)
    execution.receive(report, event.energy)


def _check_duration(event: Event, dispatched_at: float) -> None:
    """Work may begin late, in a client's queue, but it cannot have taken longer than its ticket was out.

    Most durations enter no other number of a run (a round records its longest and shortest only), so that comparing
    results would let a changed one pass.
    """
    rounding = 1e-9 * event.time
    since = event.time - dispatched_at
    if not 0.0 <= event.duration <= since + rounding:
        raise ValueError(f"it says {event.duration:g} s of a ticket that was dispatched {since:g} s before")
