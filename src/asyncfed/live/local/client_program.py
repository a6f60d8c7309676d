"""What a client process does: it holds its own data, trains what it is sent, and sends back the result."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from asyncfed.core.record import UNSET, Record, replace
from asyncfed.core.types import Uplink, Work
from asyncfed.kernels.recycled_memory import empty
from asyncfed.live.client_task import work_on
from asyncfed.live.local.shared_memory import SharedFile
from asyncfed.live.wire import (
    PREFIX_BYTES,
    Arrays,
    Cancelled,
    Failed,
    Hello,
    Message,
    Result,
    Task,
    decode_arrays,
    decode_header,
    decode_prefix,
    encode,
    to_bytes,
)
from asyncfed.problems.protocol import ClientShard, held_back
from asyncfed.uplinks.client_memory import ClientMemory

NO_TICKET = -1
"""What a client works on before its first task."""

BYTES = np.dtype(np.uint8)

MAX_LOG_BYTES = 2**20
"""A log that is longer than this is not made longer."""


class Slowdown(Record):
    """How slow a client is made: a task takes `factor` times what it takes, and that at least `min_seconds`."""

    factor: float = 1.0
    min_seconds: float = 0.0

    def seconds_to_sleep(self, worked: float) -> float:
        """How long to sleep after so many seconds of work.

        >>> Slowdown(factor=10.0, min_seconds=0.1).seconds_to_sleep(0.02)
        0.98
        """
        return self.factor * max(worked, self.min_seconds) - worked

    def with_held_back(self, shard: ClientShard, key: int) -> Slowdown:
        """The same for the task of this key; a client that lies about its speed may take longer."""
        return Slowdown(self.factor * held_back(shard, key), self.min_seconds)


class ClientSetup(NamedTuple):
    """What a client's process begins with.

    Args:
        client: its number.
        shard: its own data, and how it trains.
        first_model: the model it draws for itself, for work that starts from it. One training of it is done before the
            hello, because a process's first takes longer than others.
        slowdown: how slow it is made.
        uplinks: those of the work, and its downlink. Loading them makes uplinks of the user's own known to the process.
        corrected: whether tasks bring a correction; then a training with one is done before the hello, too.
        log: the file for what the client's own code raises; empty for none. The server does not read it.
    """

    client: int
    shard: ClientShard
    first_model: np.ndarray
    slowdown: Slowdown = Slowdown()
    uplinks: tuple[Uplink, ...] = ()
    corrected: bool = False
    log: str = ""


class SharedFiles(NamedTuple):
    """Memory that a client shares with its server.

    Args:
        models: versions of the model, to be read.
        slot: what the client writes results to.
        least_bytes: shorter ones go through the socket.
    """

    models: SharedFile
    slot: SharedFile
    least_bytes: int


class Inbox:
    """The tasks that a client was sent and has not begun with; those that were cancelled are left out.

    `ticket` is that of the last task that was taken out. Models that lie in `models` are copied when the task is read:
    afterwards the server may use their memory again, if it gives the ticket up.
    """

    def __init__(self, connection: socket.socket, models: np.ndarray | None = None) -> None:
        self.ticket = NO_TICKET
        self._connection = connection
        self._models = models
        self._tasks: deque[tuple[Task, Arrays]] = deque()
        self._cancelled = -1  # the last ticket that was; they are numbered in the order in which they are sent

    def next_task(self) -> tuple[Task, Arrays] | None:
        """Wait for a task; None when the server has closed the connection."""
        while True:
            while self._tasks:
                self.read_what_is_there()
                task, arrays = self._tasks.popleft()
                if task.ticket > self._cancelled:
                    self.ticket = task.ticket
                    return task, arrays
            if not self._read_message():
                return None

    def is_cancelled(self, ticket: int) -> bool:
        """Whether the server has given this ticket up, as far as can be known now."""
        self.read_what_is_there()
        return ticket <= self._cancelled

    def wait(self, seconds: float, ticket: int) -> None:
        """Sleep for so many seconds, or until this ticket is cancelled."""
        until = time.monotonic() + seconds
        while ticket > self._cancelled and (left := until - time.monotonic()) > 0:
            if self._readable(left) and not self._read_message():
                raise ConnectionResetError

    def read_what_is_there(self) -> None:
        """Read all messages that have arrived, without waiting for any."""
        while self._readable(0.0):
            if not self._read_message():
                raise ConnectionResetError

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._connection], [], [], seconds)[0])

    def _read_message(self) -> bool:
        """Read one message; False if the server has closed the connection."""
        prefix = _read_exactly(self._connection, PREFIX_BYTES)
        if not prefix:
            return False
        header, body = decode_prefix(bytes(prefix), max_body_bytes=2**62)  # the server started this process
        message = decode_header(_read_exactly(self._connection, header))
        if isinstance(message, Cancelled):
            self._cancelled = max(self._cancelled, message.ticket)
        else:
            assert isinstance(message, Task)
            array = self._copy_model(*message.placed) if message.placed is not UNSET else empty(body, BYTES)
            if message.placed is UNSET and not _read_into(self._connection, array.data):
                return False
            self._tasks.append((message, decode_arrays(message, array)))
        return True

    def _copy_model(self, place: int, length: int) -> np.ndarray:
        assert self._models is not None
        array = empty(length, BYTES)
        np.copyto(array, self._models[place : place + length])
        return array


class Outbox:
    """Sends results: through the socket, or with their arrays in the client's slot.

    The server has copied them from there before it sends the next task, unless it gave the ticket up.

    Args:
        connection: to the server.
        slot: the client's; None if there is none.
        least_bytes: arrays with fewer bytes go through the socket.
    """

    def __init__(self, connection: socket.socket, slot: np.ndarray | None = None, least_bytes: int = 0) -> None:
        self._connection = connection
        self._slot, self._least_bytes = slot, least_bytes

    def send(self, result: Result, arrays: Arrays) -> None:
        """Send a result and what was trained."""
        length = sum(array.nbytes for array in arrays.values())
        if self._slot is None or not self._least_bytes <= length <= len(self._slot):
            _send(self._connection, result, arrays)
            return
        done = 0
        for array in arrays.values():
            np.copyto(self._slot[done : done + array.nbytes], np.frombuffer(to_bytes(array), np.uint8))
            done += array.nbytes
        _send(self._connection, replace(result, placed=length))


def run_client(connection: socket.socket, setup: ClientSetup, shared: SharedFiles | None = None) -> None:
    """Train what arrives until the server closes the connection, or the client's own code raises an exception.

    The server is told the exception's class. All of it, which may hold paths and cells of data, is in the client's log.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its clients
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    inbox, outbox = Inbox(connection), Outbox(connection)
    if shared is not None:
        inbox = Inbox(connection, shared.models.map(write=False))
        outbox = Outbox(connection, shared.slot.map(write=True), shared.least_bytes)
        shared.models.close()
        shared.slot.close()
    try:
        try:
            _answer_tasks(inbox, outbox, connection, setup)
        except (ConnectionError, TimeoutError):
            raise
        except BaseException as error:  # also a SystemExit, whose text Python would print
            write_log(setup.log, inbox.ticket)
            _send(connection, Failed(inbox.ticket, type(error).__name__))
    except (ConnectionError, TimeoutError):
        pass  # the server is gone, so there is nothing left to do


def _answer_tasks(inbox: Inbox, outbox: Outbox, connection: socket.socket, setup: ClientSetup) -> None:
    """Say hello, then train one task after another."""
    memory, shard, slowdown = ClientMemory(), setup.shard, setup.slowdown
    warm_up(setup)
    _send(connection, Hello(setup.client))
    while (received := inbox.next_task()) is not None:
        task, arrays = received

        held = slowdown.with_held_back(shard, task.key)

        def pause(worked: float, ticket: int = task.ticket, held: Slowdown = held) -> None:
            inbox.wait(held.seconds_to_sleep(worked), ticket)

        result, sent = work_on(shard, task, arrays, memory, time.monotonic, pause, lambda: setup.first_model)
        if not inbox.is_cancelled(task.ticket):
            outbox.send(result, sent)


def warm_up(setup: ClientSetup) -> None:
    """Train once, and once with a correction if there will be any: the first time takes longer than others."""
    setup.shard.train(setup.first_model, Work(), 0)
    if setup.corrected:
        setup.shard.train(setup.first_model, Work(), 0, correction=np.zeros_like(setup.first_model))


def client_log(file: Path | None, client: int) -> str:
    """Where a client writes what its own code raises: beside the run's file, made when it is first needed."""
    return "" if file is None else str(file.absolute().with_name(f"{file.name}.clients") / f"client-{client}.log")


def write_log(file: str, ticket: int) -> None:
    """Append the exception that is being handled, with its traceback; nothing if the file is large already."""
    path = Path(file)
    with suppress(OSError):
        if not file or (path.exists() and path.stat().st_size > MAX_LOG_BYTES):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("a") as log:
            log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  ticket {ticket}\n{traceback.format_exc()}\n")


def _exit_with_parent() -> None:
    """A server that was killed cannot end its clients."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _send(connection: socket.socket, message: Message, arrays: Mapping[str, np.ndarray] | None = None) -> None:
    for piece in encode(message, arrays):
        connection.sendall(piece)


def _read_exactly(connection: socket.socket, count: int) -> bytearray:
    """So many bytes, or none if the other end has closed the connection."""
    received = bytearray(count)
    return received if _read_into(connection, memoryview(received)) else bytearray()


def _read_into(connection: socket.socket, room: memoryview) -> bool:
    """Fill this room; False if the other end has closed the connection."""
    done = 0
    while done < len(room):
        got = connection.recv_into(room[done:])
        if not got:
            return False
        done += got
    return True
