"""What a client process does: it holds its own data, trains what it is sent, and sends back the result."""

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
from asyncfed.live.client_task import train_task
from asyncfed.live.wire import PREFIX_BYTES, Hello, Message, Task, decode_array, decode_header, decode_prefix, encode
from asyncfed.problems.protocol import ClientShard


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


def run_client(
    connection: socket.socket, client: int, shard: ClientShard, slowdown: Slowdown, warm_up_params: np.ndarray
) -> None:
    """Train what arrives until the server closes the connection.

    A process's first training takes longer than others, so that one is done, on `warm_up_params`, before the hello.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its clients
    threading.Thread(target=_exit_with_parent, daemon=True).start()

    def pause(worked: float) -> None:
        time.sleep(max(0.0, slowdown.seconds_to_sleep(worked)))

    try:
        shard.train(warm_up_params, Work(), 0)
        _send(connection, Hello(client))
        while (received := _receive(connection)) is not None:
            _send(connection, *train_task(shard, *received, time.monotonic, pause))
    except (ConnectionError, TimeoutError):
        pass  # the server is gone, so there is nothing left to do


def _exit_with_parent() -> None:
    """A server that was killed cannot end its clients."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _send(connection: socket.socket, message: Message, array: np.ndarray | None = None) -> None:
    for piece in encode(message, array):
        connection.sendall(piece)


def _receive(connection: socket.socket) -> tuple[Task, np.ndarray] | None:
    prefix = _read_exactly(connection, PREFIX_BYTES)
    if not prefix:
        return None
    header, body = decode_prefix(bytes(prefix), max_body_bytes=2**62)  # the server is the one that started this process
    task = decode_header(_read_exactly(connection, header))
    assert isinstance(task, Task)
    return task, decode_array(task.dtype, _read_exactly(connection, body))


def _read_exactly(connection: socket.socket, count: int) -> bytearray:
    """So many bytes, or none if the other end has closed the connection."""
    received = bytearray(count)
    view, done = memoryview(received), 0
    while done < count:
        got = connection.recv_into(view[done:])
        if not got:
            return bytearray()
        done += got
    return received
