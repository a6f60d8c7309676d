"""A client's place at the server: its process, its line, and what it has been given to do."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import socket
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from asyncfed.live.local.client_program import Pace, serve
from asyncfed.live.session import Assignment
from asyncfed.live.wire import Task, dtype_name, encode
from asyncfed.problems.protocol import ClientShard

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess


def process_context() -> BaseContext:
    """How processes are made: by a server that has imported everything and then forks, where the system can do that.

    It does not fork from this process, so a client has nothing in its memory but what it is sent.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["asyncfed.live.local.preload"])
    return context


@contextmanager
def _main_left_out(shard: ClientShard) -> Iterator[None]:
    """Keep new processes from importing the program that was started, a command line with all its figures, say.

    They need it only if the shard, or something in it, was defined there.
    """
    main = sys.modules["__main__"]
    if b"__main__" not in pickle.dumps(shard):
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class Seat:
    """`waiting` are assignments not sent yet; `busy` is the ticket being worked on. A client does one at a time."""

    def __init__(self, client: int, pace: Pace) -> None:
        self.client = client
        self.pace = pace
        self.waiting: deque[Assignment] = deque()
        self.busy: int | None = None
        self.ready = False
        self.deaths = 0
        self.process: BaseProcess | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def start(self, shard: ClientShard, rehearsal: np.ndarray) -> asyncio.StreamReader:
        """Start the process with its shard at the other end of a line that has no name: nobody else can be on it."""
        ours, theirs = socket.socketpair()
        context = process_context()
        self.process = context.Process(  # type: ignore[attr-defined]
            target=serve,
            args=(theirs, self.client, shard, self.pace, rehearsal),
            daemon=True,
            name=f"client {self.client}",
        )
        with _main_left_out(shard):
            self.process.start()
        theirs.close()
        reader, self._writer = await asyncio.open_connection(sock=ours)
        return reader

    def give(self, assignment: Assignment) -> None:
        self.waiting.append(assignment)
        self.send_next()

    def send_next(self) -> None:
        """Send what is next, if the client is there and has nothing to do."""
        if self.ready and self.busy is None and self.waiting and self._writer is not None:
            job = self.waiting.popleft()
            self.busy = job.ticket
            task = Task(job.session, job.ticket, job.base_version, job.work, job.key, dtype_name(job.params.dtype))
            self._writer.writelines(encode(task, job.params))

    def hang_up(self) -> None:
        """Close the line and end the process, whatever it is doing."""
        self.ready, self.busy = False, None
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process.close()
            self.process = None
