"""What an actor does in a live run: it holds the data of its clients, and answers tasks with results.

It knows nothing of Ray but that its methods are called from several threads: `work` from as many as it has clients,
`cancel` and `wait_for_end` from others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from asyncfed.cluster.live_shards import ShardSource
from asyncfed.core.types import Uplink
from asyncfed.live.client_task import work_on
from asyncfed.live.local.client_program import NO_TICKET, ClientSetup, Slowdown, warm_up, write_log
from asyncfed.live.wire import MODEL, Arrays, Failed, Hello, Message, Task, WireError, decode, decode_arrays, encode
from asyncfed.problems.protocol import ClientShard
from asyncfed.uplinks.client_memory import ClientMemory

INLINE_BYTES = 96 * 1024
"""Arrays of more bytes than this go through the object store, in both directions; others are part of the call.

Ray itself puts values of 100 KiB and more into the store, each time anew. Below that, the store takes three times as
long as the call: 1.7 ms for 64 KiB there and back, against 0.6 ms.
"""

Frame = bytes | list[bytes | np.ndarray]
"""A message as `wire.encode` makes it, in one piece or with its arrays as they are; empty if nothing is to be said."""


class ClientStart(NamedTuple):
    """What a client begins with besides its data; see `ClientSetup`."""

    client: int
    first_model: np.ndarray
    slowdown: Slowdown
    uplinks: tuple[Uplink, ...]
    corrected: bool
    log: str


class ClientHost:
    """The clients of one process. They train one at a time: a model's own random numbers may be the process's."""

    def __init__(self, source: ShardSource, clients: tuple[int, ...]) -> None:
        self._source = source
        self._clients = clients
        self._training = threading.Lock()
        self._cancelled = threading.Condition()
        self._shards: dict[int, ClientShard] = {}
        self._setups: dict[int, ClientSetup] = {}
        self._memories: dict[int, ClientMemory] = {}
        self._last_cancelled = dict.fromkeys(clients, -1)
        self._end = threading.Event()

    def prepare(self, start: ClientStart) -> Frame:
        """Make a client ready, anew if it was before. The answer is its hello, or why it cannot be."""
        with self._training:
            try:
                if start.client not in self._shards:  # one that begins anew gets its data anew
                    self._shards |= self._source.shards((start.client,) if self._setups else self._clients)
                shard, first = self._shards.pop(start.client), np.array(start.first_model)
                setup = ClientSetup(start.client, shard, first, *start[2:])
                warm_up(setup)
            except BaseException as error:  # also a SystemExit, which would end the actor without a word
                return _failed(start.log, NO_TICKET, error)
            self._setups[start.client], self._memories[start.client] = setup, ClientMemory()
            return _pack(Hello(start.client))

    def work(self, client: int, frame: bytes, *arrays: np.ndarray) -> Frame:
        """Train a task. Its arrays are in the frame, or were passed by themselves."""
        setup = self._setups[client]
        with self._training:
            ticket = NO_TICKET
            try:
                task, received = _read_task(frame, arrays)
                ticket = task.ticket
                if ticket <= self._last_cancelled[client]:
                    return b""
                slowdown = setup.slowdown.with_held_back(setup.shard, task.key)

                def pause(worked: float) -> None:
                    self._wait(client, ticket, slowdown.seconds_to_sleep(worked))

                memory, first = self._memories[client], setup.first_model
                result, sent = work_on(setup.shard, task, received, memory, time.monotonic, pause, lambda: first)
                return b"" if ticket <= self._last_cancelled[client] else _pack(result, sent)
            except BaseException as error:
                return _failed(setup.log, ticket, error)

    def cancel(self, client: int, ticket: int) -> None:
        """This ticket was given up: if it has not begun, or only waits in its slowdown, it is dropped."""
        with self._cancelled:
            self._last_cancelled[client] = max(self._last_cancelled[client], ticket)
            self._cancelled.notify_all()

    def wait_for_end(self) -> None:
        """Never answers: the call fails when the process has ended, which is how the server learns of it."""
        self._end.wait()

    def _wait(self, client: int, ticket: int, seconds: float) -> None:
        """Sleep, or until the ticket is cancelled. The others may train meanwhile."""
        if seconds <= 0:
            return
        self._training.release()
        try:
            with self._cancelled:
                self._cancelled.wait_for(lambda: ticket <= self._last_cancelled[client], seconds)
        finally:
            self._training.acquire()


def _read_task(frame: bytes, arrays: Sequence[np.ndarray]) -> tuple[Task, Arrays]:
    """The task, and copies of its arrays: what a call or the object store holds cannot be written to."""
    task, body = decode(frame, 2**62)  # the server started this process
    if not isinstance(task, Task):
        raise WireError(f"the server sent a {type(task).__name__} in place of a task.")
    if not arrays:
        return task, decode_arrays(task, np.frombuffer(body, np.uint8).copy())
    names = [part.name for part in task.parts] if isinstance(task.parts, tuple) else [MODEL]
    return task, {name: np.array(array) for name, array in zip(names, arrays, strict=True)}


def _pack(message: Message, arrays: Arrays | None = None) -> Frame:
    pieces = encode(message, arrays)
    if sum(map(len, pieces)) <= INLINE_BYTES:
        return b"".join(pieces)
    return [bytes(pieces[0]), *(np.frombuffer(piece, np.uint8) for piece in pieces[1:])]


def _failed(log: str, ticket: int, error: BaseException) -> Frame:
    """The server is told the exception's class; all of it, which may hold cells of data, is in the client's log."""
    write_log(log, ticket)
    return _pack(Failed(ticket, type(error).__name__))
