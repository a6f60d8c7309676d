"""Clients of a live run as actors: their processes on the nodes of a cluster, and the calls that bring them tasks.

A task is a call of `ClientHost.work`, and its result is the answer; no call waits for another. Ray runs a call at most
once, and ends the actors of a process that has died.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import ref as weak_reference

import numpy as np
import ray

from asyncfed.cluster.connection import Connection
from asyncfed.cluster.live_host import INLINE_BYTES, ClientHost, ClientStart
from asyncfed.cluster.live_placement import ProcessPlan, choose_node
from asyncfed.cluster.live_shards import ShardSource
from asyncfed.core.types import Dispatch
from asyncfed.kernels.recycled_memory import empty
from asyncfed.live.local.client_link import NOTHING_SHARED
from asyncfed.live.session import LiveSession
from asyncfed.live.wire import (
    PREFIX_BYTES,
    Arrays,
    Failed,
    Message,
    Task,
    WireError,
    decode_header,
    decode_prefix,
    encode,
)

CONTROL = "control"
"""The group of calls that are answered while a client trains."""

NODE_SECONDS = 0.5
"""How often it is looked whether a node is there that a process waits for."""


class ActorConnection:
    """What one client sends, from its start to its end: the answers to calls of its actor."""

    def __init__(self, max_body_bytes: Callable[[], int]) -> None:
        self._max_body_bytes = max_body_bytes
        self._received: deque[object] = deque()
        self._end: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def next_message(self) -> tuple[Message, np.ndarray]:
        """The next message and its body; a client whose own code failed has nothing to say after that."""
        while not self._received:
            if self._end is not None:
                raise self._end
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        message, body = read_frame(self._received.popleft(), self._max_body_bytes())
        if isinstance(message, Failed):
            self.end(f"its own code raised {message.error}")
        return message, body

    def deliver(self, frame: object) -> None:
        """A call was answered; an empty answer says nothing: the ticket had been cancelled."""
        if self._end is None and frame != b"":
            self._received.append(frame)
            self._wake()

    def end(self, reason: str) -> None:
        """Nothing more will come."""
        if self._end is None:
            self._end = ConnectionResetError(reason)
            self._wake()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self._end is not None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def read_frame(frame: object, max_body_bytes: int) -> tuple[Message, np.ndarray]:
    """The message and the body of an answer. Ray keeps what it received; the body is a copy that may be changed."""
    pieces = frame if isinstance(frame, list) else [frame]
    if not pieces or not isinstance(pieces[0], bytes):
        raise WireError(f"the client answered with a {type(frame).__name__}, which is no message.")
    header, length = decode_prefix(pieces[0][:PREFIX_BYTES], max_body_bytes)
    message = decode_header(pieces[0][PREFIX_BYTES : PREFIX_BYTES + header])
    bodies = [np.frombuffer(pieces[0], np.uint8)[PREFIX_BYTES + header :], *pieces[1:]]
    if any(not isinstance(part, np.ndarray) or part.dtype != np.uint8 or part.ndim != 1 for part in bodies):
        raise WireError("the client's answer has a part that is no array of bytes.")
    if sum(part.size for part in bodies) != length:
        raise WireError(f"the body has {sum(part.size for part in bodies)} bytes; its prefix says {length}.")
    body = empty(length, np.dtype(np.uint8))
    if length:
        np.concatenate(bodies, out=body)
    return message, body


class SharedArrays:
    """Arrays in the object store, each once for as long as it is somebody's: the same array is the same version."""

    def __init__(self) -> None:
        self._references: dict[int, tuple[weak_reference[np.ndarray], Any]] = {}

    def put(self, array: np.ndarray) -> Any:
        """The array's reference in the object store."""
        number = id(array)
        known = self._references.get(number)
        if known is not None and known[0]() is array:
            return known[1]
        forget = weak_reference(array, lambda _: self._references.pop(number, None))
        self._references[number] = (forget, ray.put(array))
        return self._references[number][1]


class ActorProcess:
    """One process on some node, with the clients in it. It is started by the first of them, and ended by the last."""

    def __init__(
        self,
        connection: Connection,
        plan: ProcessPlan,
        source: ShardSource,
        shared: SharedArrays,
        *,
        elsewhere: bool,
        seconds: float,
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._source = source
        self._shared = shared
        self._elsewhere = elsewhere
        self._seconds = seconds
        self._connections: dict[int, ActorConnection] = {}
        self._placing = asyncio.Lock()
        self._actor: Any = None
        self._background: set[asyncio.Task[None]] = set()

    def open(self, start: ClientStart, max_body_bytes: Callable[[], int]) -> ActorConnection:
        """Begin to start a client, and the process if there is none."""
        connection = self._connections[start.client] = ActorConnection(max_body_bytes)
        task = asyncio.create_task(self._prepare(start, connection))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return connection

    def send(self, client: int, task: Task, arrays: Arrays) -> None:
        """Call the actor with a task; small arrays travel with the call, each large one once for all."""
        connection = self._connections[client]
        if self._actor is None:  # it has ended, and the loop has not heard of it yet: it will find the ticket lost
            return
        if sum(array.nbytes for array in arrays.values()) <= INLINE_BYTES:
            answer = self._actor.work.remote(client, b"".join(encode(task, arrays)))
        else:
            references = [self._shared.put(array) for array in arrays.values()]
            answer = self._actor.work.remote(client, b"".join(encode(task)), *references)

        def receive(done: asyncio.Future[Any]) -> None:
            if done.cancelled():
                return
            error = done.exception()
            if error is None:
                connection.deliver(done.result())
            else:
                connection.end(f"{type(error).__name__}: {error}")

        asyncio.wrap_future(answer.future()).add_done_callback(receive)

    def cancel(self, client: int, ticket: int) -> None:
        """Tell the client that this ticket was given up."""
        if self._actor is not None:
            self._actor.cancel.options(concurrency_group=CONTROL).remote(client, ticket)

    def release(self, client: int, *, kill: bool) -> None:
        """A client needs the process no more. With `kill` it is doing something that can only be ended with it."""
        connection = self._connections.pop(client, None)
        kill = kill and connection is not None and not connection.ended  # else the process in its place would end
        if connection is not None:
            connection.end("it was stopped")
        if kill or not self._connections:
            self._kill()

    def _kill(self) -> None:
        if self._actor is not None:
            actor, self._actor = self._actor, None
            ray.kill(actor)
            self._end_all("its process was ended")

    def _end_all(self, reason: str) -> None:
        for connection in self._connections.values():
            connection.end(reason)

    async def _prepare(self, start: ClientStart, connection: ActorConnection) -> None:
        """Wait for the process, and then for the client's hello."""
        try:
            async with asyncio.timeout(self._seconds):
                async with self._placing:
                    if self._actor is None:
                        await self._place()
                if not self._connections:  # all clients were stopped meanwhile
                    self._kill()
                    return
                connection.deliver(await self._actor.prepare.remote(start))
        except TimeoutError:
            where = "any node" if self._plan.node is None else f"the node {self._plan.node}"
            connection.end(f"it did not start on {where} within {self._seconds:g} s")
        except Exception as error:  # whatever Ray raises: the process is gone, or cannot be made
            connection.end(f"{type(error).__name__}: {error}")

    async def _place(self) -> None:
        """Wait for a node on which the process may be, and start it there."""
        nodes = self._connection.nodes
        while (node := choose_node(self._plan, await asyncio.to_thread(nodes), elsewhere=self._elsewhere)) is None:
            await asyncio.sleep(NODE_SECONDS)
        clients = self._plan.clients
        actor_class: Any = ray.remote(num_cpus=0, max_restarts=0, concurrency_groups={CONTROL: 2})(ClientHost)
        on_node = self._connection.pinned_to(node)
        there = actor_class.options(scheduling_strategy=on_node, max_concurrency=len(clients))
        actor = there.remote(self._source, clients)
        self._actor = actor

        def notice(done: asyncio.Future[Any]) -> None:
            """The process has ended, or cannot be started."""
            reason = "the run is over" if done.cancelled() else f"{type(done.exception()).__name__}: {done.exception()}"
            if self._actor is actor:
                self._actor = None
                self._end_all(reason)

        end = actor.wait_for_end.options(concurrency_group=CONTROL).remote()
        asyncio.wrap_future(end.future()).add_done_callback(notice)


class ActorClient:
    """A client as the server's loop sees it; see `ClientLink`."""

    def __init__(self, client: int, process: ActorProcess) -> None:
        self.client = client
        self.waiting: deque[Dispatch] = deque()
        self.busy: int | None = None
        self.ready = False
        self.failures = 0
        self.early_faults = 0
        self.connection: ActorConnection | None = None
        self._process = process

    def open(self, start: ClientStart, max_body_bytes: Callable[[], int]) -> ActorConnection:
        """Begin to start it."""
        self.connection = self._process.open(start, max_body_bytes)
        return self.connection

    def send_next(self, session: LiveSession) -> None:
        """Call it with the next ticket that is still in flight, if it is ready and has nothing to do."""
        while self.ready and self.busy is None and self.waiting and self.connection is not None:
            dispatch = self.waiting.popleft()
            if session.is_in_flight(dispatch.ticket):
                self.busy = dispatch.ticket
                self._process.send(self.client, *session.make_task(dispatch))

    def placed_body(self, length: int, max_bytes: int) -> np.ndarray:
        """It may be on another machine: what it sends comes with its message."""
        raise WireError(NOTHING_SHARED)

    def cancel(self, ticket: int) -> None:
        """Tell it that the ticket it works on was given up."""
        if self.busy == ticket:
            self.busy = None
            self._process.cancel(self.client, ticket)

    def stop(self) -> None:
        """End it; its process too, if it is working, or if no other client is in it."""
        working, self.ready, self.busy = self.busy is not None, False, None
        if self.connection is not None:
            self.connection = None
            self._process.release(self.client, kill=working)
