"""Replay: a new server given a journal's inputs, every training done again, every decision made again.

The clock is the journal: reports, losses, joins and leaves come when it says they came. If the journal is genuine and
the training deterministic, the replay writes the same events and ends at the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from asyncfed.core.errors import JournalError
from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Dispatch, Report
from asyncfed.engine.execution import Execution, MergeObserver
from asyncfed.engine.execution_setup import set_up
from asyncfed.engine.plan import Plan
from asyncfed.engine.training import LateTraining
from asyncfed.kernels.noise_keys import read_key
from asyncfed.problems.protocol import Problem
from asyncfed.store.events import Event
from asyncfed.store.journal import Journal
from asyncfed.store.schema import CANCEL, JOIN, LEAVE, LOST, MERGE, REFUSED, REPORT, SKIPPED, STOP, WAKE
from asyncfed.uplinks.chain import decode_message
from asyncfed.uplinks.noise import draws_noise

INPUTS = frozenset({REPORT, SKIPPED, LOST, JOIN, LEAVE, STOP, REFUSED, WAKE})
"""Kinds of events that come from outside; all others are decisions, which a new server makes itself."""

Train: TypeAlias = Callable[[int, "int | None"], "Mapping[str, float]"]
"""Called with a ticket, and the memory its client used, before its report or skip: it must put its model into
`execution.vectors.trained`, or the ticket into `execution.vectors.skipped`, and answers with what the training found
out that the report says too."""

Released: TypeAlias = "Callable[[int], dict[str, np.ndarray] | None]"
"""The message of a ticket, if the journal has kept it: where a live client added noise of its own, which no training
gives again. A simulated run keeps none; its noise is keyed, and follows from the training."""


def replay(
    problem: Problem,
    plan: Plan,
    recorded: Iterable[Event],
    journal: Journal,
    observer: MergeObserver | None = None,
    released: Released = lambda ticket: None,
) -> Iterator[int]:
    """Write to `journal` what the recorded inputs lead to.

    Args:
        problem: what was learnt, with its data.
        plan: the recorded run's plan.
        recorded: the recorded run's events.
        journal: a new journal.
        observer: called with every merge just before it is carried out.
        released: gives the message of a ticket if the journal has kept it.

    Yields:
        The number of reports done, after each input.

    Raises:
        JournalError: a recorded input cannot have happened.
    """
    execution = set_up(problem, plan, journal)
    if observer is not None:
        execution.on_merge = partial(observer, execution)
    training = LateTraining(problem, execution.vectors, plan.seed, plan.threads, execution.rule)
    dispatched_at: dict[int, float] = {}

    def note(dispatch: Dispatch) -> None:
        if dispatch.memory is None and not draws_noise(dispatch.work.uplink):
            training.pending[dispatch.ticket] = dispatch
        dispatched_at[dispatch.ticket] = execution.now

    execution.on_dispatch = note

    def train(ticket: int, memory: int | None) -> Mapping[str, float]:
        vectors, dispatch = execution.vectors, execution.dispatches[ticket]
        uplinks, start = dispatch.work.uplink, vectors.starts[ticket]
        message = released(ticket) if uplinks is not UNSET and draws_noise(uplinks) else None
        if message == {}:
            vectors.skipped.add(ticket)
        elif uplinks is not UNSET and message is not None:
            mirror = vectors.mirror(dispatch, memory)
            change, mirror = decode_message(uplinks, message, start.size, start.dtype, mirror)
            vectors.trained[ticket] = start + change
            if mirror:
                vectors.new_mirrors[ticket] = mirror
        elif ticket not in vectors.trained:
            if ticket in training.pending:
                training.train_all()
            else:  # its client may have lost its memory: only now it is known which one it used
                training.train([replace(dispatch, memory=memory)])
        return training.measured.pop(ticket, {})

    reports = 0
    for event, decisions in with_decisions(recorded):
        repeat_costs(execution, decisions)
        if event is None:
            execution.start()
            continue
        if execution.server.stopped is not None and event.kind != STOP:
            raise JournalError(
                f"event {event.seq} comes after the run had stopped; the journal was tampered with or mixed."
            )
        execution.now = event.time
        try:
            if event.kind in (REPORT, SKIPPED, LOST):
                # A ticket that is not out is for the server to refuse.
                _check_duration(event, dispatched_at.pop(event.require_ticket(), 0.0))
            repeat_input(execution, event, train)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise JournalError(f"event {event.seq} cannot have happened in this run ({error!r}).") from error
        reports += event.kind == REPORT
        yield reports
    if execution.server.stopped is not None:
        execution.conclude()
    journal.commit(execution.snapshot(), execution.dump())


def with_decisions(recorded: Iterable[Event]) -> Iterator[tuple[Event | None, list[Event]]]:
    """Every input with the decisions that followed from it. First the start, which is None, with its own."""
    event: Event | None = None
    decisions: list[Event] = []
    for row in recorded:
        if row.kind in INPUTS:
            yield event, decisions
            event, decisions = row, []
        elif row.kind in (CANCEL, MERGE):
            decisions.append(row)
    yield event, decisions


def repeat_costs(execution: Execution, decisions: Sequence[Event]) -> None:
    """What decisions cost that nobody can compute again: work that was cancelled, and noise of a live run."""
    costs = {event.require_ticket(): (event.duration, event.energy) for event in decisions if event.kind == CANCEL}
    noisy = execution.rule is not None and execution.rule.rule.draws_noise
    merges = [event for event in decisions if event.kind == MERGE] if noisy else []
    keys = {event.version: read_key(event.info["noise_key"]) for event in merges if "noise_key" in event.info}
    execution.on_cancel = lambda dispatch: costs[dispatch.ticket]
    execution.noise_key = keys.__getitem__ if keys else None


def repeat_input(execution: Execution, event: Event, train: Train) -> None:
    """Let a recorded input happen once more.

    Args:
        execution: the run in which it happens.
        event: the input, of one of the kinds INPUTS.
        train: brings the models of tickets that are reported.
    """
    if event.kind in (REPORT, SKIPPED):
        _repeat_answer(execution, event, train)
    elif event.kind == LOST:
        execution.lose(event.require_ticket(), event.duration, event.energy, event.reason)
    elif event.kind == JOIN:
        execution.join(event.require_client(), event.num_examples)
    elif event.kind == LEAVE:
        execution.leave(event.require_client(), event.reason)
    elif event.kind == REFUSED:
        execution.refuse(event.ticket, event.require_client(), event.is_fault, event.require_reason())
    elif event.kind == WAKE:
        execution.wake(event.timer)
    elif event.kind == STOP and execution.server.stopped is None:
        execution.halt(event.require_reason())


def _repeat_answer(execution: Execution, event: Event, train: Train) -> None:
    ticket, client = event.require_ticket(), event.require_client()
    dispatch = execution.dispatches[ticket]
    memory = dispatch.memory if event.memory is None else event.memory
    execution.vectors.starts[ticket] = execution.start_of(dispatch, memory)
    metrics = {**(event.metrics or {}), **train(ticket, memory)}
    if (ticket in execution.vectors.skipped) != (event.kind == SKIPPED):
        raise ValueError(
            "its client would have sent something" if event.kind == SKIPPED else "nothing was worth sending"
        )
    if event.kind == SKIPPED:
        execution.skip(ticket, event.duration, event.energy, memory)
        return
    if dispatch.work.start == "own":
        execution.vectors.own[client] = execution.vectors.trained[ticket]
    examples = execution.server.num_examples(client)
    report = Report(ticket, client, event.time, event.duration, examples, metrics or None, memory)
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
