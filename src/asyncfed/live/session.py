"""A live run without its engine: the same server, vectors and journal, but time and results come from outside.

An engine moves messages and keeps the clock; all else is decided here. Every engine drives it like this:

    session = LiveSession(problem, plan, journal, name=fresh_random_text, limits=Limits())
    session.start()                                 # or resume(), if the run was interrupted or killed
    session.evaluate_with(submit)                   # if models are to be measured while the run goes on
    began = monotonic() - session.state.elapsed     # `now` below is monotonic() - began: it continues a resumed run
    while not session.finished:
        for client, result, arrays in received():   # as many as there are: they share one commit
            session.accept(client, result, arrays, now)  # Accepted, or a Refusal that says why
        for client in disconnected():               # a client died: its work is lost, it may come back
            session.lose_all(client, "its process ended", now)
        session.expire(now)                         # timers, tickets nobody will answer, the end of the run's time
        for dispatch in session.commit(now):        # these are on disk, and only now may they be sent
            send(dispatch.client, *session.make_task(dispatch))
        for dispatch in session.take_cancelled():   # tickets that were given up: their clients may be told
            send(dispatch.client, Cancelled(dispatch.ticket))
    seal(session, journal)                          # writes the last checkpoint and the verdict

Three rules keep a killed server from losing or repeating anything:

1. Nothing is sent before it is on disk. Tickets to be sent come out of `commit` and from nowhere else, so a client
   never trains on a model that a resumed server does not know.
2. An accepted result and all that followed from it (the report, the merge, the next tickets) are written in one
   transaction, together with the bytes the client sent. A resumed server takes the last checkpoint, puts the results
   accepted since through the same code, and compares the outcome with what the journal says.
3. A resumed server gives up all tickets that were out and takes a new `name`; results that carry an old one are
   refused as late, and those that carry a name which no server of this run had as a fault of their client. So no result
   can be merged by two servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from asyncfed.core.errors import JournalError, ProtocolError
from asyncfed.core.pool import ClientPool
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import UNSET, Config, Record, UnsetType, replace
from asyncfed.core.types import Dispatch, Report, Uplink, Work
from asyncfed.engine.background_evaluation import BackgroundEvaluation, Submit
from asyncfed.engine.execution_setup import set_up
from asyncfed.engine.plan import Checkpoint, Plan, most_drops
from asyncfed.engine.progress import RunState
from asyncfed.engine.replay import repeat_costs, repeat_input, with_decisions
from asyncfed.kernels.recycled_memory import MemorySource, empty
from asyncfed.live.checks import Limits, find_fault, find_fault_in_change, max_message_bytes, read_model
from asyncfed.live.machine_entropy import draw_noise_key
from asyncfed.live.private_copy import Measured, copy_bytes, copy_model
from asyncfed.live.ticket_records import TicketRecords
from asyncfed.live.wire import CORRECTION, DIFFERENCE, MODEL, Arrays, Parts, Result, Task, describe_parts, dtype_name
from asyncfed.problems.protocol import Problem
from asyncfed.store.error_messages import explain_damage
from asyncfed.store.events import Event
from asyncfed.store.journal import Journal
from asyncfed.store.loss_reasons import MODEL_LOST, OVER, REPLY_REFUSED, SERVER_DIED, SET_ASIDE, TOO_LATE, WRONG_SECRET
from asyncfed.store.schema import LEAVE, LOST, REFUSED, REPORT, SKIPPED, WAKE
from asyncfed.uplinks.chain import declared_size, message_size
from asyncfed.uplinks.noise import draws_noise
from asyncfed.uplinks.norms import change_norm


class CheckpointPolicy(Config):
    """When a commit also writes a checkpoint.

    Args:
        seconds: So many seconds after the last one; 0 or more.
        payload_bytes: Or when so many bytes of results were accepted since; 0 or more.
        small_bytes: A checkpoint of more bytes than this is written when `times_its_size` was accepted, and not before,
            so that large models are not written over and over; 0 or more.
        times_its_size: So many times what the last checkpoint wrote; 0 or more. With 4, checkpoints add a quarter to
            what is written for each byte that clients send.
    """

    seconds: float = 2.0
    payload_bytes: int = 256 * 2**20
    small_bytes: int = 2**20
    times_its_size: float = 4.0


class Accepted(Record):
    """The result was accepted; once it is committed, nothing can undo it."""

    ticket: int


class Refusal(Record):
    """The result was refused. `is_fault` if the client is to blame, and not bad luck, such as having been too slow."""

    reason: str
    is_fault: bool


class LiveSession:
    """One live run. `now` is always seconds since the run began; it never goes back, and counts on after a resume.

    `name` is a text that no other server of this run has or had: take a random one each time.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        journal: Journal,
        *,
        name: str,
        limits: Limits | None = None,
        checkpoints: CheckpointPolicy | None = None,
    ) -> None:
        self.name = name
        self.finished = False
        self._journal = journal
        self._limits = limits or Limits()
        self._policy = checkpoints or CheckpointPolicy()
        self._num_clients = problem.num_clients
        self._dtype = problem.dtype
        self._train_key, self._uplink_key = purpose_key(plan.seed, "train"), purpose_key(plan.seed, "uplink")
        self._deadline = plan.budget.elapsed
        self._unsent: list[Dispatch] = []
        self._cancelled: list[Dispatch] = []
        self._timers: list[tuple[float, int]] = []  # a heap: when, and the number
        self._work: Work | None = None
        self._payload_bytes = self._checkpoint_bytes = 0
        self._saved_at: float | None = None
        self._checkpoint = journal.checkpoint()
        self._execution = set_up(problem, plan, journal, self._checkpoint)
        self._execution.most_drops = most_drops(problem.num_clients, plan)
        self._execution.on_dispatch = self._record_dispatch
        self._execution.on_wake = self._set_timer
        self._execution.on_cancel = self._cancel
        self._execution.noise_key = draw_noise_key
        rule = self._execution.rule
        self._is_private = rule is not None and rule.rule.draws_noise
        if self._is_private:
            journal.erase_what_is_deleted()
            self._limits = replace(self._limits, times_median=inf)
        self._records = TicketRecords(self._limits, self._execution.vectors.params.nbytes)
        self._saved_version = self._execution.version
        self.max_result_bytes = 0
        """How long the body of a result may be, whichever ticket it is for."""
        self.state = RunState(self._execution)

    # ---- what an observer may read --------------------------------------------------------------------------

    @property
    def clients(self) -> ClientPool:
        """The clients that take part at present, as far as the server knows."""
        return self._execution.server.clients

    @property
    def excluded(self) -> frozenset[int]:
        """Clients that were at fault too often. They get no more work."""
        return frozenset(self._records.excluded)

    @property
    def refused(self) -> int:
        """How many results were refused."""
        return self._records.refused

    @property
    def lost(self) -> int:
        """How many tickets were lost."""
        return self._execution.ledger.lost

    @property
    def skipped(self) -> int:
        """How many tickets were answered with nothing worth sending."""
        return self._execution.ledger.skipped

    @property
    def filtered(self) -> Mapping[int, int]:
        """How many updates of each client the rule has filtered since this server was started."""
        return self._execution.filtered

    def in_flight(self, client: int | None = None) -> list[int]:
        """Tickets that are out, oldest first: all, or those of one client, which works on them in this order."""
        dispatches = self._execution.server.outstanding
        return [ticket for ticket, dispatch in dispatches.items() if client is None or dispatch.client == client]

    def is_in_flight(self, ticket: int) -> bool:
        """Whether this ticket is out: dispatched, and neither reported nor lost."""
        return ticket in self._execution.server.outstanding

    @property
    def header(self) -> dict[str, Any]:
        """What the run's file says about it: its experiment, and the fingerprint of its problem."""
        return self._journal.header()

    @property
    def file(self) -> Path | None:
        """The run's file; None if it is in memory."""
        return self._journal.path

    @property
    def expected_result_bytes(self) -> int:
        """How long the body of a result may be, as far as it is known before the strategy is asked."""
        params = self._execution.vectors.params
        return max_message_bytes(self._execution.server.strategy.work, params.size, params.itemsize)

    # ---- beginning -------------------------------------------------------------------------------------------

    def keep_models_in(self, source: MemorySource) -> None:
        """Let the model lie in this memory, and what merges make of it; to be called before the run begins."""
        vectors = self._execution.vectors
        params = empty(vectors.params.size, vectors.params.dtype, source)
        np.copyto(params, vectors.params)
        vectors.params = params

    def start(self) -> None:
        """Begin a new run."""
        if self._checkpoint is not None:
            raise ProtocolError(f"{self._journal.path} has begun already; resume() continues it.")
        self._execution.start()
        self._end_if_stopped()

    def resume(self) -> None:
        """Continue a run that was interrupted or killed: nothing merged is lost, tickets that were out are given up.

        The file is not touched before the next `commit`, so that a server may be killed here, too.
        """
        if self._checkpoint is None:
            self.start()  # it was killed before its first commit: nothing has happened yet
            return
        state, _ = self._checkpoint
        with explain_damage(self._journal.path, "checkpoint"):
            self.finished = state["finished"]
            self._records.restore(state["live"])
            self._timers = [(due, number) for due, number in state.get("timers", ())]
        self._journal.forget_incomplete(state["seq"], state["now"])
        self._redo_since(state["seq"])
        self._unsent.clear()
        self._cancelled.clear()
        for ticket in self.in_flight():
            if not self._stopped():
                self._lose(ticket, SERVER_DIED)
        self._end_if_stopped()

    def _redo_since(self, since: int) -> None:
        """Do again, from the payloads in the file, what happened after the checkpoint; the outcome must be the same."""
        journal, execution = self._journal, self._execution
        recorded = list(journal.event_rows(since))
        journal.go_back(since)
        for event, decisions in with_decisions(recorded):
            if event is None or self._stopped():
                continue  # what comes before the first input, or the stop that was decided
            execution.now = event.time
            repeat_costs(execution, decisions)
            execution.on_cancel = self._cancel  # which knows when the ticket was dispatched
            try:
                self._record_input(event)
                repeat_input(execution, event, self._restore_payload)
            except (LookupError, TypeError, ValueError, AttributeError, ProtocolError) as error:
                raise JournalError(
                    f"{journal.path} is damaged: its event {event.seq} cannot have happened ({error!r}). Restore the "
                    "file from a copy."
                ) from error
        execution.noise_key = draw_noise_key
        journal.confirm(since)

    def _restore_payload(self, ticket: int, memory: int | None) -> dict[str, float]:
        """Put what the client sent back into memory: the model that it led to, or that nothing was worth sending."""
        vectors, dispatch = self._execution.vectors, self._execution.dispatches[ticket]
        noised = draws_noise(dispatch.work.uplink)
        message = self._journal.released_message(ticket) if noised else None
        message = self._journal.message(ticket) if message is None else message
        model: np.ndarray | None
        if message is not None:
            mirror = vectors.mirror(dispatch, memory)
            model, mirror = read_model(dispatch, message, vectors.starts[ticket], mirror)
            if mirror:
                vectors.new_mirrors[ticket] = mirror
        elif noised:
            raise LookupError(f"the message of ticket {ticket} is missing")
        else:  # with uplinks: files of version 3 hold the model that a message had led to
            model = self._journal.payload(ticket, self._dtype)
        if model is None:
            vectors.skipped.add(ticket)
        else:
            vectors.trained[ticket] = model
            self._records.norms.add(change_norm(model, vectors.starts[ticket]))
        return {}

    def _record_input(self, event: Event) -> None:
        """Repeat what the session itself had recorded at an event of the journal."""
        records = self._records
        if event.kind == REFUSED:
            records.count_refusal(event.require_client(), event.is_fault)
        elif event.kind == LEAVE:
            self._give_up_all(event.require_client())
        elif event.kind == WAKE:
            self._timers.remove(min(timer for timer in self._timers if timer[1] == event.timer))
            heapify(self._timers)
        elif event.kind in (REPORT, SKIPPED, LOST):
            ticket, client = event.require_ticket(), event.require_client()
            records.close(ticket, client, event.time)
            if event.kind == LOST:
                records.give_up(ticket, client)

    # ---- inputs ----------------------------------------------------------------------------------------------

    def copy_body(self, client: int, result: Result, shared: np.ndarray) -> tuple[np.ndarray, Measured | None]:
        """The body of a result that lies in memory which its client can still change, for `accept`.

        Of a model, which is what mostly lies there, also what `accept` would find by reading it again.
        """
        dispatch, source = self._execution.server.outstanding.get(result.ticket), self._journal.sent_memory
        # The last tickets of a run that is over were decided together with the stop, and start from no model.
        if self.finished or dispatch is None or dispatch.client != client or result.parts is not UNSET:
            return copy_bytes(shared, None), None
        start = self._execution.start_of(dispatch, None if isinstance(result.memory, UnsetType) else result.memory)
        fits = (result.dtype, len(shared)) == (dtype_name(start.dtype), start.nbytes)
        if dispatch.work.uplink is not UNSET or not fits:
            return copy_bytes(shared, None), None
        return copy_model(shared, start, source)

    def accept(
        self, client: int, result: Result, arrays: Arrays, now: float, measured: Measured | None = None
    ) -> Accepted | Refusal:
        """A client sent a result. A wrong one is refused, counted and journalled; its ticket is then lost.

        Args:
            client: the one the engine received it from, which the result itself need not be honest about.
            result: what it says.
            arrays: what it trained.
            now: as always.
            measured: what `copy_body` found of the latter.
        """
        self._advance_clock(now)
        if self.finished:
            return Refusal(OVER, is_fault=False)
        records, server = self._records, self._execution.server
        if client in records.excluded or result.session in records.earlier_names:
            records.refused += 1  # not journalled: an excluded client could fill the disk
            return Refusal(SET_ASIDE if client in records.excluded else TOO_LATE, is_fault=False)
        dispatch = server.outstanding.get(result.ticket) if type(result.ticket) is int else None
        own = dispatch is not None and dispatch.client == client
        if result.session != self.name:
            return self._refuse(result.ticket if own else None, client, WRONG_SECRET, is_fault=True, loses=own)
        if dispatch is None or not own:
            return self._refuse_unexpected(client, result.ticket, dispatch)
        ticket = dispatch.ticket
        if result.memory == -1 and ticket in self._execution.vectors.differences:
            self._lose(ticket, MODEL_LOST)
            self._end_if_stopped()
            return Refusal(MODEL_LOST, is_fault=False)
        seconds_out = self._execution.now - records.dispatched_at[ticket]
        fault = find_fault(dispatch, result, self._limits, server.num_examples(client), seconds_out)
        if fault is None:
            memory = None if isinstance(result.memory, UnsetType) else result.memory
            start = self._execution.start_of(dispatch, memory)
            try:
                model, mirror = read_model(dispatch, arrays, start, self._execution.vectors.mirror(dispatch, memory))
            except ValueError as error:
                fault = str(error)
            else:
                if model is not None:
                    norm = change_norm(model, start) if measured is None else measured.norm
                    fault = find_fault_in_change(norm, records.norms)
        if fault is not None:
            return self._refuse(ticket, client, fault, is_fault=True, loses=True)
        self._execution.vectors.starts[ticket] = start
        if mirror:
            self._execution.vectors.new_mirrors[ticket] = mirror
        if model is None:
            self._skip(dispatch, memory)
        else:
            if measured is not None:
                self._journal.payload_sums[ticket] = measured.check_sum
            self._report(dispatch, result, memory, model, arrays)
        return Accepted(ticket)

    def refuse_unreadable(self, client: int, reason: str, now: float, ticket: int | None = None) -> Refusal:
        """A client sent what cannot be decoded. The ticket it was for is lost, or else the one it was working on."""
        self._advance_clock(now)
        if self.finished or client in self._records.excluded:
            return Refusal(OVER if self.finished else SET_ASIDE, is_fault=False)
        tickets = self.in_flight(client)
        if ticket is None and tickets:
            ticket = tickets[0]
        return self._refuse(ticket, client, reason, is_fault=True, loses=ticket in tickets)

    def add_fault(self, client: int, reason: str, now: float) -> Refusal:
        """A client did what no honest one does, and it is about none of its tickets: it said hello twice, say."""
        self._advance_clock(now)
        if self.finished or client in self._records.excluded:
            return Refusal(OVER if self.finished else SET_ASIDE, is_fault=False)
        return self._refuse(None, client, reason, is_fault=True)

    def lose(self, ticket: int, reason: str, now: float) -> None:
        """This ticket will never be answered. Does nothing if it is not in flight any more."""
        self._advance_clock(now)
        if ticket in self._execution.server.outstanding and not self.finished:
            self._lose(ticket, reason)
            self._end_if_stopped()

    def lose_all(self, client: int, reason: str, now: float) -> None:
        """A client died: all its tickets are lost. It may come back without having left."""
        for ticket in self.in_flight(client):
            self.lose(ticket, reason, now)

    def num_examples(self, client: int) -> int:
        """How many rows the client has declared; 0 if it has not been there yet and nobody knows."""
        return self._execution.server.num_examples(client)

    def join(self, client: int, now: float, num_examples: int | None = None) -> None:
        """A client joins, or returns, with so many rows, or as many as before.

        Does nothing if it takes part already, or was excluded.
        """
        self._advance_clock(now)
        if not (self.finished or client in self.clients or client in self._records.excluded):
            self._execution.join(client, self.num_examples(client) if num_examples is None else num_examples)
            self._end_if_stopped()

    def leave(self, client: int, reason: str, now: float) -> None:
        """A client has left for good, or for long: it gets no more tickets, and those it has are lost."""
        self._advance_clock(now)
        if client in self.clients and not self.finished:
            self._leave(client, reason)
            self._end_if_stopped()

    def expire(self, now: float) -> list[int]:
        """Let timers run out, and give up tickets whose time is over.

        Returns:
            The clients that held such tickets: they may be hanging.
        """
        self._advance_clock(now)
        self._wake_up()
        if self.finished:  # the server's last tickets, decided together with the stop, were never dispatched
            return []
        late = self._records.find_overdue(self._execution.server.outstanding.values(), self._execution.now)
        for dispatch in late:
            self.lose(dispatch.ticket, f"no answer within {round(self._records.allowed_seconds or 0.0, 2):g} s", now)
        return [dispatch.client for dispatch in late]

    def evaluate_with(self, submit: Submit) -> None:
        """Measure models in the background from now on: an engine calls it when the run has begun."""
        self._execution.background = BackgroundEvaluation(self._execution.evaluator, submit)

    def halt(self, reason: str, now: float) -> None:
        """The engine ends the run: no client is left, say."""
        self._advance_clock(now)
        if not self.finished:
            self._execution.halt(reason)
            self._end_if_stopped()

    # ---- outputs ---------------------------------------------------------------------------------------------

    def commit(self, now: float) -> list[Dispatch]:
        """Write all that happened to disk. The tickets it returns may then be sent, and results acknowledged."""
        self._advance_clock(now)
        journal = self._journal
        self._execution.take_evaluation()
        if self._saved_at is None:
            self.save()
        elif journal.events or journal.evaluations:
            if self._checkpoint_due(self._execution.now - self._saved_at) or self.finished or self._must_erase():
                self.save()
            else:
                journal.commit(None, None)
        unsent, self._unsent = self._unsent, []
        in_flight = self._execution.server.outstanding
        return [] if self.finished else [dispatch for dispatch in unsent if dispatch.ticket in in_flight]

    def make_task(self, dispatch: Dispatch) -> tuple[Task, Arrays]:
        """What is sent for a ticket in flight: its task, and the arrays that go with it. Never change the latter.

        They are the model, or the difference from one that the client has, unless it starts from its own; and what the
        rule sends along.
        """
        ticket, client, work, execution = dispatch.ticket, dispatch.client, dispatch.work, self._execution
        params = execution.vectors.starts[ticket]
        arrays = {MODEL: params} if work.start == "server" else {}
        if ticket in execution.vectors.differences:
            arrays = {DIFFERENCE + name: array for name, array in execution.vectors.differences[ticket].items()}
        if execution.rule is not None:
            arrays |= execution.rule.sent_with(ticket)
        parts: Parts = UNSET if len(arrays) == 1 and MODEL in arrays else describe_parts(arrays)
        task = Task(
            self.name,
            ticket,
            dispatch.base_version,
            work,
            draw_key(self._train_key, client, ticket),
            dtype_name(params.dtype),
            UNSET if dispatch.memory is None else dispatch.memory,
            UNSET if work.uplink is UNSET else draw_key(self._uplink_key, client, ticket),
            parts,
        )
        return task, arrays

    def take_cancelled(self) -> list[Dispatch]:
        """Tickets that were given up since the last call. To be called after `commit`; their clients may be told."""
        cancelled, self._cancelled = self._cancelled, []
        return cancelled

    @property
    def next_timer(self) -> float | None:
        """When the next timer runs out; None if there is none. `expire` is to be called then."""
        return self._timers[0][0] if self._timers else None

    @property
    def uplinks(self) -> tuple[Uplink, ...]:
        """What clients need to know to send and to receive, as far as it is known before the strategy is asked."""
        work = self._execution.server.strategy.work
        downlink = () if work.downlink is UNSET else (work.downlink,)
        return (() if work.uplink is UNSET else work.uplink) + downlink

    def sends_corrections(self) -> bool:
        """Whether the rule sends corrections along with the model, to judge by the first ticket."""
        if self._execution.rule is None:
            return False
        rule = self._execution.rule.rule
        memory = rule.init(self._execution.vectors.params, self._num_clients)
        return CORRECTION in rule.send(memory, 0)

    def first_model(self, client: int) -> np.ndarray:
        """The model that this client draws for itself, for work that starts from it."""
        return self._execution.first_model(client)

    def _checkpoint_due(self, since_last: float) -> bool:
        policy, size, background = self._policy, self._checkpoint_bytes, self._execution.background
        patience = 2.0 if background is not None and background.is_running else 1.0  # else it would be waited for
        accepted, since_last = self._payload_bytes / patience, since_last / patience
        worth_it = size <= policy.small_bytes or accepted >= policy.times_its_size * size
        return worth_it and (
            since_last >= policy.seconds or accepted >= policy.payload_bytes or size > policy.small_bytes
        )

    def _must_erase(self) -> bool:
        """In a private run the file holds no update any more when it says that it was merged.

        A checkpoint with the merge makes the payloads superfluous; the noised model is in it, the updates are not.
        """
        return self._is_private and self._execution.version != self._saved_version

    def save(self) -> None:
        """Write a checkpoint with all that happened. Tickets that `commit` has not returned yet stay where they are.

        A measurement that was begun is waited for: what came before a checkpoint is not repeated.
        """
        self._execution.take_evaluation(wait=True)
        state, arrays = self.checkpoint()
        self._journal.commit(state, arrays)
        self._payload_bytes, self._saved_at = 0, self._execution.now
        self._saved_version = self._execution.version
        self._checkpoint_bytes = sum(array.nbytes for array in arrays.values())

    def checkpoint(self) -> Checkpoint:
        """The state and the arrays from which `resume` continues."""
        state = {**self._execution.snapshot(), "finished": self.finished, "live": self._records.snapshot(self.name)}
        if self._timers:
            state["timers"] = self._timers
        arrays = self._execution.dump()
        if self._is_private and self.finished:  # what was never merged will not be: nobody continues from here
            params = self._execution.vectors.params
            arrays["trained_tickets"], arrays["trained"] = (
                np.empty(0, np.int64),
                np.empty((0, params.size), params.dtype),
            )
        return state, arrays

    # ---- inside ----------------------------------------------------------------------------------------------

    def _advance_clock(self, now: float) -> None:
        """Set the clock, which never goes back; when the run's time is up, end it."""
        execution = self._execution
        if self.finished or now <= execution.now:
            return
        if self._deadline is not None and now > self._deadline:
            execution.now = max(execution.now, self._deadline)
            execution.halt(f"the time budget of {self._deadline:g} s is spent")
            self._end_if_stopped()
        else:
            execution.now = now

    def _record_dispatch(self, dispatch: Dispatch) -> None:
        self._records.dispatched_at[dispatch.ticket] = self._execution.now
        self._unsent.append(dispatch)
        if dispatch.work is not self._work:  # mostly it is the same
            self._work, params = dispatch.work, self._execution.vectors.params
            allowed = max_message_bytes(dispatch.work, params.size, params.itemsize)
            self.max_result_bytes = max(self.max_result_bytes, allowed)

    def _set_timer(self, due: float, number: int) -> None:
        heappush(self._timers, (due, number))

    def _wake_up(self) -> None:
        """Ask the strategy about timers that have run out; those it sets meanwhile are for the next time."""
        now, numbers = self._execution.now, []
        while self._timers and self._timers[0][0] <= now:
            numbers.append(heappop(self._timers)[1])
        for number in numbers:
            if not self.finished:
                self._execution.wake(number)
                self._end_if_stopped()

    def _cancel(self, dispatch: Dispatch) -> tuple[float, float]:
        """The strategy gives a ticket up: how many seconds it was out, and no energy, for nobody measures it."""
        ticket, client = dispatch.ticket, dispatch.client
        after = self._records.close(ticket, client, self._execution.now)
        self._records.give_up(ticket, client)
        self._cancelled.append(dispatch)
        return after, 0.0

    def _skip(self, dispatch: Dispatch, memory: int | None) -> None:
        """A client had nothing worth sending."""
        kept_for_good = draws_noise(dispatch.work.uplink)  # noise of its own may have decided it
        (self._journal.released if kept_for_good else self._journal.messages).append((dispatch.ticket, {}))
        self._execution.skip(dispatch.ticket, self._close(dispatch), 0.0, memory)
        self._end_if_stopped()

    def _close(self, dispatch: Dispatch) -> float:
        """A ticket was answered. Its duration is measured here: learning rates may depend on it."""
        ticket, client, now = dispatch.ticket, dispatch.client, self._execution.now
        duration = now - self._records.start_time(ticket, client)
        self._records.close(ticket, client, now)
        return duration

    def _report(self, dispatch: Dispatch, result: Result, memory: int | None, model: np.ndarray, sent: Arrays) -> None:
        """Give a sound result to the server, and keep what was sent until a checkpoint holds its effect."""
        execution, ticket, client = self._execution, dispatch.ticket, dispatch.client
        model = np.ascontiguousarray(model)
        execution.vectors.trained[ticket] = model
        if dispatch.work.start == "own":
            execution.vectors.own[client] = model
        uplinks, num_bytes = dispatch.work.uplink, message_size(sent)
        if uplinks is UNSET:
            self._journal.payloads.append((ticket, model))
        elif draws_noise(uplinks):
            self._journal.released.append((ticket, sent))
        else:
            self._journal.messages.append((ticket, sent))
        self._payload_bytes += num_bytes
        duration = self._close(dispatch)
        metrics = {name: float(value) for name, value in result.metrics.items()} if result.metrics else None
        if uplinks is not UNSET and declared_size(uplinks, model.size, model.itemsize) is None:
            metrics = {**(metrics or {}), "bytes": float(num_bytes)}
        examples = execution.server.num_examples(client)
        execution.receive(Report(ticket, client, execution.now, duration, examples, metrics, memory), 0.0)
        self._end_if_stopped()

    def _refuse_unexpected(self, client: int, claimed: object, dispatch: Dispatch | None) -> Refusal:
        """A result for a ticket that is not in flight, or not this client's."""
        ticket = claimed if type(claimed) is int else -1
        if dispatch is not None:
            return self._refuse(ticket, client, f"ticket {ticket} belongs to client {dispatch.client}", is_fault=True)
        if self._records.excuse_late_answer(ticket, client):
            return self._refuse(ticket, client, TOO_LATE, is_fault=False)
        if 0 <= ticket < self._execution.server.next_ticket:
            return self._refuse(ticket, client, f"ticket {ticket} was answered already", is_fault=True)
        return self._refuse(None, client, f"ticket {str(claimed)[:20]} was never dispatched", is_fault=True)

    def _refuse(self, ticket: int | None, client: int, reason: str, *, is_fault: bool, loses: bool = False) -> Refusal:
        """Journal the refusal; with `loses` the ticket was answered, wrongly, and is lost."""
        records = self._records
        self._execution.refuse(ticket, client, is_fault, reason)
        records.count_refusal(client, is_fault)
        if loses and ticket is not None:
            self._lose(ticket, REPLY_REFUSED)
            records.excuse_late_answer(ticket, client)
        if client in records.excluded and client in self.clients and not self._stopped():
            self._leave(client, SET_ASIDE)
        self._end_if_stopped()
        return Refusal(reason, is_fault)

    def _lose(self, ticket: int, reason: str) -> None:
        client = self._execution.server.outstanding[ticket].client
        after = self._records.close(ticket, client, self._execution.now)
        self._records.give_up(ticket, client)
        self._execution.lose(ticket, after, 0.0, reason)

    def _leave(self, client: int, reason: str) -> None:
        self._give_up_all(client)
        self._execution.leave(client, reason)

    def _give_up_all(self, client: int) -> None:
        for ticket in self.in_flight(client):
            self._records.close(ticket, client, self._execution.now)
            self._records.give_up(ticket, client)

    def _stopped(self) -> bool:
        return self._execution.server.stopped is not None

    def _end_if_stopped(self) -> None:
        """If the run has just ended, evaluate for the last time."""
        if self._stopped() and not self.finished:
            self.finished = True
            self._execution.conclude()
