"""GridDriver: passes messages between a session and Flower's grid, without waiting for any single node.

Each step goes once through everything: which nodes are there, what they answered, what is overdue, what is to be sent.
A node that answers is sent its next task in the same step, however long the others take.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from hmac import compare_digest

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from asyncfed.core.record import Record, replace
from asyncfed.core.types import Dispatch
from asyncfed.flower.client_nodes import QUERY_SECONDS, ClientNodes
from asyncfed.flower.messages import Introduction, pack_message, unpack_introduction, unpack_message
from asyncfed.flower.node_errors import describe_error
from asyncfed.flower.reply_collector import ReplyCollector
from asyncfed.live.session import LiveSession, Refusal
from asyncfed.live.wire import Arrays, Result, WireError

LATE_SECONDS = 30.0
"""A message may come back so much later than its ticket is given up: it is then refused as late, not lost."""

MAX_ERRORS_IN_A_ROW = 5
"""A node whose app fails so often, one time after another, gets no more work until it has introduced itself anew."""

MAX_SILENCES = 3
"""So does a node that leaves so many tasks unanswered, one after another."""

MAX_PUSHES = 3
"""How often a message is handed to the SuperLink before it counts as not taken."""

SECRET_BYTES = 16


class SentTask(Record):
    """A task that was sent: to be answered by this node, with this secret, before `until`."""

    ticket: int
    client: int
    node: int
    secret: str
    until: float


class SentQuery(Record):
    """A query that was sent: this node is to introduce itself before `until`."""

    node: int
    until: float


class GridDriver:
    """`check` says what is wrong with a node's introduction, or None; `log` is given lines for the run's log."""

    def __init__(
        self,
        grid: Grid,
        *,
        check: Callable[[Introduction], str | None],
        log: Callable[[str], None],
    ) -> None:
        self.nodes = ClientNodes()
        self._grid = grid
        self._replies = ReplyCollector(grid, log)
        self._ttl = 0.0
        self._check = check
        self._log = log
        self._queries: dict[str, SentQuery] = {}
        self._tasks: dict[str, SentTask] = {}
        self._held: dict[int, list[Dispatch]] = {}
        self._held_since: dict[int, float] = {}
        self._errors: dict[int, int] = {}
        self._silences: dict[int, int] = {}
        self._session: LiveSession | None = None

    # ---- before the run --------------------------------------------------------------------------------------

    def find_clients(self, now: float) -> list[int]:
        """Query nodes, and collect their introductions. Returns the clients that have introduced themselves."""
        self._query_nodes(now)
        self._collect(now)
        return sorted(self.nodes.node_of)

    def attach(self, session: LiveSession, ttl: float) -> None:
        """From now on, drive this session, by its clock. `ttl`: seconds after which a message has expired."""
        self._session, self._ttl = session, ttl
        until = session.state.elapsed + QUERY_SECONDS
        self._queries = {identity: SentQuery(query.node, until) for identity, query in self._queries.items()}
        self.nodes.query_again_at.clear()

    # ---- one step --------------------------------------------------------------------------------------------

    def step(self, now: float, return_seconds: float) -> None:
        """Go once through all nodes and messages. A client not seen for `return_seconds` after a restart has left."""
        session = self._attached
        self._query_nodes(now)
        self._collect(now)
        for client in self._remove_missing(return_seconds, now):
            session.leave(client, f"its node was not there for {return_seconds:g} s", now)
        for client in session.expire(now):
            self._count_silence(client, now)
        self._send(session.commit(now), now)
        session.take_cancelled()  # Flower has no way to call a message back: its answer will be refused as late

    @property
    def _attached(self) -> LiveSession:
        assert self._session is not None, "attach() comes before step()"
        return self._session

    def _query_nodes(self, now: float) -> None:
        """Remove nodes that went offline; query those that have not introduced themselves."""
        online = set(self._grid.get_node_ids())
        for node in [node for node in self.nodes.client_of if node not in online]:
            self._remove(node, "its node went offline", now)
        self.nodes.note_online(online, now)
        queried = {query.node for query in self._queries.values()}
        for node in self.nodes.find_unknown(sorted(online), queried, now):
            identity = self._push(RecordDict(), node, MessageType.QUERY, QUERY_SECONDS)
            if identity is not None:
                self._queries[identity] = SentQuery(node, now + QUERY_SECONDS)

    def _remove(self, node: int, reason: str, now: float) -> None:
        client = self.nodes.remove(node)
        self._errors.pop(node, None)
        self._silences.pop(node, None)
        if client is not None and not self._is_excluded(client):
            self._held.pop(client, None)
            self._log(f"client {client} has left: {reason}")
            if self._session is not None:
                self._session.leave(client, reason, now)

    def _is_excluded(self, client: int) -> bool:
        return self._session is not None and client in self._session.excluded

    # ---- what nodes answered ---------------------------------------------------------------------------------

    def _collect(self, now: float) -> None:
        expected = [*self._queries, *self._tasks]
        for reply in self._replies.collect(expected):
            identity = reply.metadata.reply_to_message_id
            query, task = self._queries.pop(identity, None), self._tasks.pop(identity, None)
            if query is not None:
                self._handle_introduction(query.node, reply, now)
            elif task is not None:
                self._handle_result(task, reply, now)
        for identity in [identity for identity, query in self._queries.items() if now > query.until]:
            del self._queries[identity]
        for identity in [identity for identity, task in self._tasks.items() if now > task.until]:
            overdue = self._tasks.pop(identity)
            self._attached.lose(overdue.ticket, "no answer came", now)

    def _handle_introduction(self, node: int, reply: Message, now: float) -> None:
        try:
            if reply.has_error():
                raise WireError(describe_error(reply.error.code, reply.error.reason))
            introduction = unpack_introduction(reply.content)
            wrong = self._check(introduction) or self.nodes.add(node, introduction.client)
        except WireError as error:
            wrong = str(error)
        if wrong is not None:
            self.nodes.pause(node, now)
            self._log(f"node {node} is refused: {wrong}")
            return
        client = introduction.client
        if self._is_excluded(client):
            return  # it was logged when it was refused the last time; it stays known, so that it is not queried again
        self._log(f"client {client} has joined: node {node}, {introduction.num_examples} examples")
        if self._session is not None:
            self._session.join(client, now, introduction.num_examples)
            self._held_since.pop(client, None)
            self._send([d for d in self._held.pop(client, []) if self._session.is_in_flight(d.ticket)], now)

    def _handle_result(self, sent: SentTask, reply: Message, now: float) -> None:
        session = self._attached
        self._silences.pop(sent.node, None)
        if reply.has_error():
            error = describe_error(reply.error.code, reply.error.reason)
            session.lose(sent.ticket, error, now)
            self._count_error(sent, error, now)
            return
        self._errors.pop(sent.node, None)
        try:
            result, arrays = unpack_message(reply.content, Result, session.max_result_bytes)
        except WireError as error:
            self._log(f"client {sent.client}: {error}")
            session.refuse_unreadable(sent.client, str(error), now, sent.ticket)
            return
        self._accept(sent, result, arrays, now)

    def _accept(self, sent: SentTask, result: Result, arrays: Arrays, now: float) -> None:
        """Give the result to the session, under its name if it carries the secret of the task that it answers.

        Only who was sent a task knows the message to be answered, whose number Flower makes of its content, so a wrong
        secret is a fault of that node. A result for another of its tickets is judged by the session.
        """
        session = self._attached
        knows = result.ticket != sent.ticket or compare_digest(result.session.encode(), sent.secret.encode())
        name = session.name if knows else ""
        outcome = session.accept(sent.client, replace(result, session=name), arrays, now)
        if isinstance(outcome, Refusal):
            self._log(f"client {sent.client}: ticket {result.ticket} is refused, {outcome.reason}")
        else:
            self.nodes.trust(sent.node)
        if result.ticket != sent.ticket:
            session.lose(sent.ticket, "its node answered for another ticket", now)

    def _count_error(self, sent: SentTask, error: str, now: float) -> None:
        self._log(f"client {sent.client}: ticket {sent.ticket} is lost, {error}; the node's own log says more")
        self._errors[sent.node] = self._errors.get(sent.node, 0) + 1
        if self._errors[sent.node] >= MAX_ERRORS_IN_A_ROW:
            self.nodes.pause(sent.node, now)
            self._remove(sent.node, f"its app failed {MAX_ERRORS_IN_A_ROW} times in a row", now)

    def _count_silence(self, client: int, now: float) -> None:
        """A ticket of this client has expired; a node that never answers gives up its slot."""
        node = self.nodes.node_of.get(client)
        if node is None:
            return
        self._silences[node] = self._silences.get(node, 0) + 1
        if self._silences[node] >= MAX_SILENCES:
            self.nodes.pause(node, now)
            self._remove(node, f"it did not answer {MAX_SILENCES} tasks in a row", now)

    # ---- what is to be sent ----------------------------------------------------------------------------------

    def _send(self, dispatches: Iterable[Dispatch], now: float) -> None:
        for dispatch in dispatches:
            node = self.nodes.node_of.get(dispatch.client)
            if node is None:  # a restarted server knows the client, but not yet which node it is
                self._held.setdefault(dispatch.client, []).append(dispatch)
                self._held_since.setdefault(dispatch.client, now)
            else:
                self._send_to(node, dispatch, now)

    def _send_to(self, node: int, dispatch: Dispatch, now: float) -> None:
        """Send a task with a secret of its own in the place of the session's name."""
        secret = secrets.token_hex(SECRET_BYTES)
        task, arrays = self._attached.make_task(dispatch)
        content = pack_message(replace(task, session=secret), arrays)
        identity = self._push(content, node, MessageType.TRAIN, self._ttl + LATE_SECONDS)
        if identity is not None:
            until = now + self._ttl + 2 * LATE_SECONDS
            self._tasks[identity] = SentTask(dispatch.ticket, dispatch.client, node, secret, until)
        else:
            self._attached.lose(dispatch.ticket, "the SuperLink did not take the message", now)

    def _push(self, content: RecordDict, node: int, kind: str, ttl: float) -> str | None:
        """Hand a message to the SuperLink. Returns its identity, or None if the SuperLink did not take it.

        Flower cuts large arrays into pieces, sends each by itself, and again if the line breaks. But a SuperLink that
        had taken a piece when it was restarted, or the line broke, does not take it again, and Flower then raises an
        error of a private class: the message is made anew, and only pieces that are not there yet are sent. What is
        left of the first one expires; if its node should answer it all the same, nobody waits for that. A SuperLink
        that is gone for good, or a run that was stopped, shows at the next look for nodes, which is not guarded.
        """
        for _ in range(MAX_PUSHES):
            try:
                identities = list(self._grid.push_messages([Message(content, node, kind, ttl=ttl)]))
            except Exception as error:
                self._log(f"a message to node {node} was not handed over: {type(error).__name__}")
                continue
            return (identities or [None])[0] or None
        return None

    def _remove_missing(self, seconds: float, now: float) -> list[int]:
        """Clients whose tickets were held for so many seconds, because no node has introduced itself as them."""
        missing = [client for client, since in self._held_since.items() if now - since > seconds]
        for client in missing:
            self._held.pop(client, None)
            del self._held_since[client]
        return missing
