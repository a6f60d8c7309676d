"""A live run without its engine: the same server, vectors and journal, but time and replies come from outside.

An engine moves messages and keeps the clock; all else is decided here. It is driven like this, by any engine:

    session = LiveSession(problem, plan, journal, name=fresh_random_text, limits=Limits())
    session.start()                          # or resume(), on the journal of a run that was interrupted or killed
    began = monotonic() - session.state.elapsed  # `now` below is monotonic() - began: it goes on where the run stopped
    send(session.commit(now))                # what commit() answers may be handed to the clients: it is on disk
    while not session.finished:
        for reply in what_came_in():         # as many as there are: they share one commit
            session.accept(reply, now)       # Accepted, or a Refusal that says why
        for client in who_is_gone():         # a node died: its work is lost, the node itself may come back
            session.lose_all(client, "its process ended", now)
        session.expire(now)                  # tickets nobody will answer; also ends the run when its time is up
        send(session.commit(now))            # then, and not before, tell clients that their replies were accepted
    seal(session, journal)                   # `running.seal` writes the last checkpoint and the verdict

Three rules keep a killed server from losing or repeating anything:

1. Nothing leaves before it is on disk. Assignments come out of `commit` and from nowhere else, so a client never
   trains on a model that a resumed server does not know.
2. An accepted reply and all that followed from it (the report, the merge, the next tickets) are written in one
   transaction, together with the bytes the client sent. A resumed server takes the last checkpoint, puts the replies
   accepted since through the same code, and compares what comes of it with what the journal says.
3. A resumed server gives up all tickets that were out and calls itself by a new `name`; replies to the old one are
   refused. So no reply can be merged by two servers.
"""

from __future__ import annotations

import numpy as np

from asyncfed.core.errors import JournalError, ProtocolError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import Config, Record
from asyncfed.core.types import Dispatch, Pool, Report, Work
from asyncfed.engine.plan import Checkpoint, Plan, set_up
from asyncfed.engine.progress import RunState
from asyncfed.engine.replay import Row, steps_of
from asyncfed.live.checks import Expected, Limits, Reply, fault_in, norm_of_change
from asyncfed.live.ticket_records import Standing
from asyncfed.problems.protocol import Problem
from asyncfed.store.journal import Journal
from asyncfed.store.loss_reasons import OVER, REPLY_REFUSED, SERVER_DIED, SET_ASIDE, TOO_LATE
from asyncfed.store.schema import LEAVE, LOST, REFUSED, REPORT


class Saving(Config):
    """When a commit also writes a checkpoint: so many seconds, or bytes of payloads, after the last one.

    A checkpoint of more than `small_bytes` waits until a quarter of its size has come in, so that large models are not
    written over and over.
    """

    seconds: float = 2.0
    payload_bytes: int = 256 * 2**20
    small_bytes: int = 2**20


class Assignment(Record):
    """What a client is to be sent. Never change `params`: others hold the same array. `key` seeds all its chance."""

    session: str
    ticket: int
    client: int
    base_version: int
    work: Work
    key: int
    params: np.ndarray


class Accepted(Record):
    """The reply was taken; once it is committed, nothing can undo it."""

    ticket: int


class Refusal(Record):
    """The reply was not taken. `is_fault` if the node is to blame, and not bad luck, such as having been too slow."""

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
        saving: Saving | None = None,
    ) -> None:
        self.name = name
        self.finished = False
        self._journal = journal
        self._limits = limits or Limits()
        self._saving = saving or Saving()
        self._examples: list[int] = problem.num_examples.tolist()
        self._dtype = problem.dtype
        self._train_key = purpose_key(plan.seed, "train")
        self._deadline = plan.budget.elapsed
        self._standing = Standing(self._limits)
        self._unsent: list[Dispatch] = []
        self._payload_bytes = self._checkpoint_bytes = 0
        self._saved_at: float | None = None
        self._checkpoint = journal.checkpoint()
        self._execution = set_up(problem, plan, journal, self._checkpoint)
        self._execution.on_dispatch = self._note_dispatch
        self.state = RunState(self._execution)

    # ---- what an observer may read ----------------------------------------------------------------------------

    @property
    def clients(self) -> Pool:
        """Those who are there, as far as the server knows."""
        return self._execution.server.clients

    @property
    def set_aside(self) -> frozenset[int]:
        """Nodes that were wrong too often. They get no more work."""
        return frozenset(self._standing.set_aside)

    @property
    def refused(self) -> int:
        """How many replies were refused."""
        return self._standing.refused

    @property
    def lost(self) -> int:
        return self._execution.ledger.lost

    def in_flight(self, client: int | None = None) -> list[int]:
        """Tickets that are out, oldest first: all, or those of one client, who works on them in this order."""
        flying = self._execution.server.outstanding
        return [ticket for ticket, dispatch in flying.items() if client is None or dispatch.client == client]

    # ---- beginning -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a new run."""
        if self._checkpoint is not None:
            raise ProtocolError(f"{self._journal.path} has begun already; resume() goes on with it.")
        self._execution.start()
        self._end_if_stopped()

    def resume(self) -> None:
        """Go on with a run that was interrupted or killed: nothing merged is lost, all that was out is given up.

        The file is not touched before the next `commit`, so that a server may be killed here, too.
        """
        if self._checkpoint is None:
            self.start()  # it was killed before its first commit: nothing has happened yet
            return
        state, _ = self._checkpoint
        self.finished = state["finished"]
        self._standing.restore(state["live"])
        self._repeat(state["seq"])
        self._unsent.clear()
        for ticket in self.in_flight():
            if not self._stopped():
                self._lose(ticket, SERVER_DIED)
        self._end_if_stopped()

    def _repeat(self, since: int) -> None:
        """Do again, from the payloads in the file, what happened after the checkpoint; it must come to the same."""
        journal, execution = self._journal, self._execution
        recorded = list(journal.event_rows(since))
        journal.go_back(since)
        steps = steps_of(execution, self._examples, self._recall)
        for row in recorded:
            step = steps.get(row[2])
            if step is None or self._stopped():
                continue  # a decision, which is made again, or the stop that was
            execution.now = row[1]
            try:
                self._note_input(row)
                step(row)
            except (LookupError, TypeError, ValueError, AttributeError, ProtocolError) as error:
                raise JournalError(
                    f"{journal.path} is damaged: its event {row[0]} cannot have happened ({error!r}). Restore the file "
                    "from a copy."
                ) from error
        journal.confirm(since)

    def _recall(self, ticket: int) -> None:
        """Put what the client sent back to where it was."""
        vectors = self._execution.vectors
        model = self._journal.payload(ticket, self._dtype)
        vectors.trained[ticket] = model
        self._standing.norms.add(norm_of_change(model, vectors.handed_out[ticket]))

    def _note_input(self, row: Row) -> None:
        """What the session itself remembers of a recorded event."""
        standing, (_, time, kind, ticket, client, _, value, _, _) = self._standing, row
        if kind == REFUSED:
            standing.count_refusal(client, bool(value))
        elif kind == LEAVE:
            self._give_up_all(client)
        elif kind in (REPORT, LOST):
            standing.settled(ticket, client, time)
            if kind == LOST:
                standing.gave_up(ticket, client)

    # ---- inputs ----------------------------------------------------------------------------------------------

    def accept(self, reply: Reply, now: float) -> Accepted | Refusal:
        """A node has answered. What is wrong is refused, counted and written down; the ticket is then lost."""
        self._turn_to(now)
        if self.finished:
            return Refusal(OVER, is_fault=False)
        if reply.client in self._standing.set_aside or reply.session != self.name:
            self._standing.refused += 1  # not written down: a node that was set aside could fill the disk
            return Refusal(SET_ASIDE if reply.client in self._standing.set_aside else TOO_LATE, is_fault=False)
        dispatch = self._execution.server.outstanding.get(reply.ticket) if type(reply.ticket) is int else None
        if dispatch is None or dispatch.client != reply.client:
            return self._refuse_stray(reply, dispatch)
        ticket, client = dispatch.ticket, dispatch.client
        out_for = self._execution.now - self._standing.handed_out_at[ticket]
        start, examples = self._execution.vectors.handed_out[ticket], self._execution.server.num_examples(client)
        fault = fault_in(reply, Expected(start, examples, out_for), self._limits, self._standing.norms)
        if fault is not None:
            return self._refuse(ticket, client, fault, is_fault=True, loses=True)
        self._take(dispatch, reply)
        return Accepted(ticket)

    def unreadable(self, client: int, reason: str, now: float, ticket: int | None = None) -> Refusal:
        """A node sent what cannot even be read. The ticket it was for is lost, or else the one it was working on."""
        self._turn_to(now)
        if self.finished or client in self._standing.set_aside:
            return Refusal(OVER if self.finished else SET_ASIDE, is_fault=False)
        tickets = self.in_flight(client)
        if ticket is None and tickets:
            ticket = tickets[0]
        return self._refuse(ticket, client, reason, is_fault=True, loses=ticket in tickets)

    def lose(self, ticket: int, reason: str, now: float) -> None:
        """This ticket will never be answered. Nothing happens if it is not out any more."""
        self._turn_to(now)
        if ticket in self._execution.server.outstanding and not self.finished:
            self._lose(ticket, reason)
            self._end_if_stopped()

    def lose_all(self, client: int, reason: str, now: float) -> None:
        """A node died: all that it had in hand is lost. It may come back without having left."""
        for ticket in self.in_flight(client):
            self.lose(ticket, reason, now)

    def join(self, client: int, now: float) -> None:
        """A node came (back) that the server had not counted on. Nothing happens if it is here, or was set aside."""
        self._turn_to(now)
        if not (self.finished or client in self.clients or client in self._standing.set_aside):
            self._execution.join(client, self._examples[client])
            self._end_if_stopped()

    def leave(self, client: int, reason: str, now: float) -> None:
        """A node is gone for good, or for long: it gets no more tickets, and those it has are lost."""
        self._turn_to(now)
        if client in self.clients and not self.finished:
            self._leave(client, reason)
            self._end_if_stopped()

    def expire(self, now: float) -> list[int]:
        """Give up tickets whose time is over. Answers with the clients that held them: they may be hanging."""
        self._turn_to(now)
        late = self._standing.overdue(self._execution.server.outstanding.values(), self._execution.now)
        for dispatch in late:
            self.lose(dispatch.ticket, f"no answer within {self._limits.ticket_seconds:g} s", now)
        return [dispatch.client for dispatch in late]

    def halt(self, reason: str, now: float) -> None:
        """The engine ends the run: there is nobody left, say."""
        self._turn_to(now)
        if not self.finished:
            self._execution.halt(reason)
            self._end_if_stopped()

    # ---- outputs ---------------------------------------------------------------------------------------------

    def commit(self, now: float) -> list[Assignment]:
        """Write down all that happened. What it answers with may then be sent, and replies may be acknowledged."""
        self._turn_to(now)
        journal = self._journal
        if self._saved_at is None:
            self.save()
        elif journal.events or journal.evaluations:
            if self._checkpoint_due(self._execution.now - self._saved_at) or self.finished:
                self.save()
            else:
                journal.commit(None, None)
        unsent, self._unsent = self._unsent, []
        flying = self._execution.server.outstanding
        return [] if self.finished else [self._assignment(d) for d in unsent if d.ticket in flying]

    def _checkpoint_due(self, since_last: float) -> bool:
        saving, came_in = self._saving, self._payload_bytes
        worth_it = self._checkpoint_bytes <= saving.small_bytes or 4 * came_in >= self._checkpoint_bytes
        return (since_last >= saving.seconds and worth_it) or came_in >= saving.payload_bytes

    def save(self) -> None:
        """Write a checkpoint with all that happened. Assignments not fetched yet stay where they are."""
        state, arrays = self.checkpoint()
        self._journal.commit(state, arrays)
        self._payload_bytes, self._saved_at = 0, self._execution.now
        self._checkpoint_bytes = sum(array.nbytes for array in arrays.values())

    def checkpoint(self) -> Checkpoint:
        state = {**self._execution.snapshot(), "finished": self.finished, "live": self._standing.snapshot()}
        return state, self._execution.vectors.dump()

    def _assignment(self, dispatch: Dispatch) -> Assignment:
        ticket, client = dispatch.ticket, dispatch.client
        key = draw_key(self._train_key, client, ticket)
        params = self._execution.vectors.handed_out[ticket]
        return Assignment(self.name, ticket, client, dispatch.base_version, dispatch.work, key, params)

    # ---- small things ----------------------------------------------------------------------------------------

    def _turn_to(self, now: float) -> None:
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

    def _note_dispatch(self, dispatch: Dispatch) -> None:
        self._standing.handed_out_at[dispatch.ticket] = self._execution.now
        self._unsent.append(dispatch)

    def _take(self, dispatch: Dispatch, reply: Reply) -> None:
        """Let a sound reply in. How long it took is measured here: learning rates may depend on it."""
        execution, ticket, client = self._execution, dispatch.ticket, dispatch.client
        model = np.ascontiguousarray(reply.params)
        execution.vectors.trained[ticket] = model
        if dispatch.work.start == "own":
            execution.vectors.own[client] = model
        self._journal.payloads.append((ticket, model))
        self._payload_bytes += model.nbytes
        duration = self._execution.now - self._standing.began(ticket, client)
        self._standing.settled(ticket, client, self._execution.now)
        metrics = {name: float(value) for name, value in reply.metrics.items()} if reply.metrics else None
        examples = execution.server.num_examples(client)
        execution.receive(Report(ticket, client, self._execution.now, duration, examples, metrics), 0.0)
        self._end_if_stopped()

    def _refuse_stray(self, reply: Reply, dispatch: Dispatch | None) -> Refusal:
        """A reply to a ticket that is not in flight, or not this client's."""
        client, ticket = reply.client, reply.ticket if type(reply.ticket) is int else -1
        if dispatch is not None:
            return self._refuse(ticket, client, f"ticket {ticket} belongs to client {dispatch.client}", is_fault=True)
        if self._standing.forgive(ticket, client):
            return self._refuse(ticket, client, TOO_LATE, is_fault=False)
        if 0 <= ticket < self._execution.server.next_ticket:
            return self._refuse(ticket, client, f"ticket {ticket} was answered already", is_fault=True)
        return self._refuse(None, client, f"ticket {str(reply.ticket)[:20]} was never handed out", is_fault=True)

    def _refuse(self, ticket: int | None, client: int, reason: str, *, is_fault: bool, loses: bool = False) -> Refusal:
        """Write the refusal down; with `loses` the ticket was answered, wrongly, and is lost."""
        self._execution.refuse(ticket, client, is_fault, reason)
        self._standing.count_refusal(client, is_fault)
        if loses and ticket is not None:
            self._lose(ticket, REPLY_REFUSED)
            self._standing.forgive(ticket, client)
        if client in self._standing.set_aside and client in self.clients and not self._stopped():
            self._leave(client, SET_ASIDE)
        self._end_if_stopped()
        return Refusal(reason, is_fault)

    def _lose(self, ticket: int, reason: str) -> None:
        client = self._execution.server.outstanding[ticket].client
        after = self._standing.settled(ticket, client, self._execution.now)
        self._standing.gave_up(ticket, client)
        self._execution.lose(ticket, after, 0.0, reason)

    def _leave(self, client: int, reason: str) -> None:
        self._give_up_all(client)
        self._execution.leave(client, reason)

    def _give_up_all(self, client: int) -> None:
        for ticket in self.in_flight(client):
            self._standing.settled(ticket, client, self._execution.now)
            self._standing.gave_up(ticket, client)

    def _stopped(self) -> bool:
        return self._execution.server.stopped is not None

    def _end_if_stopped(self) -> None:
        """If the run has just come to its end, measure for the last time."""
        if self._stopped() and not self.finished:
            self.finished = True
            self._execution.conclude()
