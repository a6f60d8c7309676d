"""A client: a process that holds its own data, trains what it is sent, and sends back what came of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time

import numpy as np

from asyncfed.core.record import Record
from asyncfed.core.types import Work
from asyncfed.live.wire import (
    PREFIX_BYTES,
    Hello,
    Message,
    Result,
    Task,
    array_in,
    dtype_name,
    encode,
    lengths,
    message_in,
)
from asyncfed.problems.protocol import ClientShard


class Pace(Record):
    """How slow a client pretends to be: a job takes `slowness` times what it takes, and that at least `seconds`."""

    slowness: float = 1.0
    seconds: float = 0.0

    def rest(self, worked: float) -> float:
        """How long to sleep after so many seconds of work.

        >>> Pace(slowness=10.0, seconds=0.1).rest(0.02)
        0.98
        """
        return self.slowness * max(worked, self.seconds) - worked


def serve(line: socket.socket, client: int, shard: ClientShard, pace: Pace, rehearsal: np.ndarray) -> None:
    """Work until the server hangs up. A first training takes longer than others: it is done before saying hello."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which tells us
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        shard.train(rehearsal, Work(), 0)
        _send(line, Hello(client))
        while (received := _receive(line)) is not None:
            task, params = received
            begun = time.monotonic()
            trained = shard.train(params, task.work, task.key)
            time.sleep(max(0.0, pace.rest(time.monotonic() - begun)))
            duration = time.monotonic() - begun
            _send(
                line,
                Result(task.session, task.ticket, duration, shard.num_examples, dtype_name(trained.dtype)),
                trained,
            )
    except (ConnectionError, TimeoutError):
        pass  # the server is gone, and so are we


def _leave_with_parent() -> None:
    """A server that was killed cannot ask anybody to stop."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _send(line: socket.socket, message: Message, array: np.ndarray | None = None) -> None:
    for piece in encode(message, array):
        line.sendall(piece)


def _receive(line: socket.socket) -> tuple[Task, np.ndarray] | None:
    prefix = _exactly(line, PREFIX_BYTES)
    if not prefix:
        return None
    header, body = lengths(bytes(prefix), most_body_bytes=2**62)  # the server is the one we were started by
    task = message_in(_exactly(line, header))
    assert isinstance(task, Task)
    return task, array_in(task.dtype, _exactly(line, body))


def _exactly(line: socket.socket, count: int) -> bytearray:
    """So many bytes, or nothing if the other end has hung up."""
    received = bytearray(count)
    view, done = memoryview(received), 0
    while done < count:
        got = line.recv_into(view[done:])
        if not got:
            return bytearray()
        done += got
    return received
