"""Between the session and Flower's grid: carries tasks to nodes and their answers back, and waits for nobody.

Each look goes once around: who is there, what came back, what is overdue, what is to be sent. A node that answers is
given its next task in the same look, however long the others take.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from hmac import compare_digest
from typing import Any

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from asyncfed.core.record import Record
from asyncfed.flower.messages import Introduction, pack_model, unpack_introduction, unpack_model
from asyncfed.live.checks import Reply
from asyncfed.live.session import Assignment, LiveSession, Refusal
from asyncfed.live.wire import Result, Task, WireError, dtype_name

GREETING_SECONDS = 60.0
"""How long a node may take to say who it is; then, and after an answer that was refused, it is asked again."""

SLACK = 30.0
"""A message may come back so much later than its ticket is given up: it is then told to be late, not lost."""

ERRORS_IN_A_ROW = 5
"""A node whose app fails so often, one time after another, gets no more work until it has introduced itself anew."""

SECRET_BYTES = 16


class Errand(Record):
    """A task on its way: to be answered by this node, with this secret, before `until`."""

    ticket: int
    client: int
    node: int
    secret: str
    until: float


class Greeting(Record):
    node: int
    until: float


class Directory:
    """Which node is which client. A client has one node at a time; a node is asked who it is before it gets work."""

    def __init__(self) -> None:
        self.node_of: dict[int, int] = {}
        self.client_of: dict[int, int] = {}
        self.ask_again_at: dict[int, float] = {}

    def unknown(self, nodes: Iterable[int], asked: set[int], now: float) -> list[int]:
        """Nodes to be asked who they are."""
        return [
            node
            for node in nodes
            if node not in self.client_of and node not in asked and now >= self.ask_again_at.get(node, 0.0)
        ]

    def enter(self, node: int, client: int) -> str | None:
        """Write down that `node` is `client`; the answer says why not."""
        holder = self.node_of.get(client)
        if holder is not None and holder != node:
            return f"client {client} is node {holder} already; give every node a partition-id of its own"
        self.node_of[client], self.client_of[node] = node, client
        return None

    def strike(self, node: int) -> int | None:
        """Forget the node. The answer is the client it was."""
        client = self.client_of.pop(node, None)
        if client is not None:
            del self.node_of[client]
        return client


class Courier:
    """`admit` says what is wrong with a node's introduction, or None; `tell` is told what a log should say."""

    def __init__(
        self,
        grid: Grid,
        *,
        ttl: float,
        most_bytes: int,
        admit: Callable[[Introduction], str | None],
        tell: Callable[[str], None],
    ) -> None:
        self.directory = Directory()
        self._grid = grid
        self._ttl = ttl
        self._most_bytes = most_bytes
        self._admit = admit
        self._tell = tell
        self._greetings: dict[str, Greeting] = {}
        self._errands: dict[str, Errand] = {}
        self._held: dict[int, list[Assignment]] = {}
        self._held_since: dict[int, float] = {}
        self._errors: dict[int, int] = {}
        self._session: LiveSession | None = None

    # ---- before the run --------------------------------------------------------------------------------------

    def gather(self, now: float) -> list[int]:
        """Ask nodes who they are. The answer lists the clients that are there."""
        self._look_around(now)
        self._collect(now)
        return sorted(self.directory.node_of)

    def serve(self, session: LiveSession) -> None:
        """From now on, carry this session's tasks, by its clock."""
        self._session = session
        self._greetings = {
            i: Greeting(g.node, session.state.elapsed + GREETING_SECONDS) for i, g in self._greetings.items()
        }
        self.directory.ask_again_at.clear()

    # ---- one look --------------------------------------------------------------------------------------------

    def look(self, now: float, return_seconds: float) -> None:
        """Go around once."""
        session = self._running
        self._look_around(now)
        self._collect(now)
        for client in self._gone_for(return_seconds, now):
            session.leave(client, f"its node was not there for {return_seconds:g} s", now)
        session.expire(now)
        self._send(session.commit(now), now)

    @property
    def _running(self) -> LiveSession:
        assert self._session is not None, "serve() comes before look()"
        return self._session

    def _look_around(self, now: float) -> None:
        nodes = set(self._grid.get_node_ids())
        for node in [node for node in self.directory.client_of if node not in nodes]:
            self._dismiss(node, "its node went offline", now)
        asked = {greeting.node for greeting in self._greetings.values()}
        for node in self.directory.unknown(sorted(nodes), asked, now):
            message = Message(RecordDict(), node, MessageType.QUERY, ttl=GREETING_SECONDS)
            for identity in self._grid.push_messages([message]):
                if identity:
                    self._greetings[identity] = Greeting(node, now + GREETING_SECONDS)

    def _dismiss(self, node: int, reason: str, now: float) -> None:
        client = self.directory.strike(node)
        self._errors.pop(node, None)
        if client is not None:
            self._held.pop(client, None)
            self._tell(f"client {client} is gone: {reason}")
            if self._session is not None:
                self._session.leave(client, reason, now)

    # ---- what came back --------------------------------------------------------------------------------------

    def _collect(self, now: float) -> None:
        waiting = [*self._greetings, *self._errands]
        replies = list(self._grid.pull_messages(waiting)) if waiting else []
        for reply in replies:
            identity = reply.metadata.reply_to_message_id
            greeting, errand = self._greetings.pop(identity, None), self._errands.pop(identity, None)
            if greeting is not None:
                self._introduced(greeting.node, reply, now)
            elif errand is not None:
                self._answered(errand, reply, now)
        for identity in [i for i, greeting in self._greetings.items() if now > greeting.until]:
            del self._greetings[identity]
        for identity in [i for i, errand in self._errands.items() if now > errand.until]:
            late = self._errands.pop(identity)
            self._running.lose(late.ticket, "no answer came", now)

    def _introduced(self, node: int, reply: Message, now: float) -> None:
        try:
            if reply.has_error():
                raise WireError(_error_in(reply))
            who = unpack_introduction(reply.content)
            wrong = self._admit(who) or self.directory.enter(node, who.client)
        except WireError as error:
            wrong = str(error)
        if wrong is not None:
            self.directory.ask_again_at[node] = now + GREETING_SECONDS
            self._tell(f"node {node} is not let in: {wrong}")
            return
        self._tell(f"client {who.client} is here: node {node}, {who.num_examples} examples")
        if self._session is not None:
            self._session.join(who.client, now)
            self._held_since.pop(who.client, None)
            still_out = self._session.in_flight(who.client)
            self._send([held for held in self._held.pop(who.client, []) if held.ticket in still_out], now)

    def _answered(self, errand: Errand, reply: Message, now: float) -> None:
        session = self._running
        if reply.has_error():
            session.lose(errand.ticket, _error_in(reply), now)
            self._count_error(errand, _error_in(reply), now)
            return
        self._errors.pop(errand.node, None)
        try:
            result, params = unpack_model(reply.content, Result, self._most_bytes)
        except WireError as error:
            self._tell(f"client {errand.client}: {error}")
            session.unreadable(errand.client, str(error), now, errand.ticket)
            return
        if result.ticket == errand.ticket and not compare_digest(result.session.encode(), errand.secret.encode()):
            # Flower makes sure that a sender is registered, not that it is the one it says; whoever does not know
            # the secret never saw the task, so the node it speaks for is not to blame.
            self._tell(f"somebody else answered for client {errand.client}")
            session.lose(errand.ticket, "it was answered by somebody who had not been sent it", now)
            return
        self._accept(errand, result, params, now)

    def _accept(self, errand: Errand, result: Result, params: Any, now: float) -> None:
        session = self._running
        outcome = session.accept(
            Reply(
                session.name,
                result.ticket,
                errand.client,
                params,
                result.duration,
                result.num_examples,
                result.metrics,
            ),
            now,
        )
        if isinstance(outcome, Refusal):
            self._tell(f"client {errand.client}: ticket {result.ticket} is refused, {outcome.reason}")
        if result.ticket != errand.ticket:
            session.lose(errand.ticket, "its node answered for another ticket", now)

    def _count_error(self, errand: Errand, error: str, now: float) -> None:
        self._tell(f"client {errand.client}: ticket {errand.ticket} is lost, {error}")
        self._errors[errand.node] = self._errors.get(errand.node, 0) + 1
        if self._errors[errand.node] >= ERRORS_IN_A_ROW:
            self.directory.ask_again_at[errand.node] = now + GREETING_SECONDS
            self._dismiss(errand.node, f"its app failed {ERRORS_IN_A_ROW} times in a row", now)

    # ---- what is to be sent ----------------------------------------------------------------------------------

    def _send(self, assignments: Iterable[Assignment], now: float) -> None:
        for assignment in assignments:
            node = self.directory.node_of.get(assignment.client)
            if node is None:  # a restarted server knows the client, but has not heard yet which node it is
                self._held.setdefault(assignment.client, []).append(assignment)
                self._held_since.setdefault(assignment.client, now)
            else:
                self._send_to(node, assignment, now)

    def _send_to(self, node: int, assignment: Assignment, now: float) -> None:
        secret = secrets.token_hex(SECRET_BYTES)
        message = Message(_task_content(assignment, secret), node, MessageType.TRAIN, ttl=self._ttl + SLACK)
        errand = Errand(assignment.ticket, assignment.client, node, secret, now + self._ttl + 2 * SLACK)
        identities = list(self._grid.push_messages([message]))
        if identities and identities[0]:
            self._errands[identities[0]] = errand
        else:
            self._running.lose(assignment.ticket, "the SuperLink did not take the message", now)

    def _gone_for(self, seconds: float, now: float) -> list[int]:
        gone = [client for client, since in self._held_since.items() if now - since > seconds]
        for client in gone:
            self._held.pop(client, None)
            del self._held_since[client]
        return gone


def _task_content(assignment: Assignment, secret: str) -> RecordDict:
    task = Task(
        session=secret,
        ticket=assignment.ticket,
        base_version=assignment.base_version,
        work=assignment.work,
        key=assignment.key,
        dtype=dtype_name(assignment.params.dtype),
    )
    return pack_model(task, assignment.params)


def _error_in(reply: Message) -> str:
    return f"its node reports error {reply.error.code}: {str(reply.error.reason)[:200]}"
