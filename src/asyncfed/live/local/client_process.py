"""ClientProcess: a client as the server sees it, its process, its connection and the tickets it holds."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

from asyncfed.core.types import Dispatch
from asyncfed.live.local.client_program import ClientSetup, run_client
from asyncfed.live.local.connection import Connection, connected_sockets
from asyncfed.live.local.server_folder import claim_folder
from asyncfed.live.session import LiveSession
from asyncfed.live.wire import Cancelled, encode

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext
    from multiprocessing.process import BaseProcess


def process_context() -> ForkServerContext | SpawnContext:
    """How processes are made: forked from a server process that has imported everything, where the system can do that.

    They are not forked from this process, so a client has nothing in its memory but what it is sent.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    claim_folder()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["asyncfed.live.local.preload"])
    return context


@contextmanager
def _without_main_module(setup: ClientSetup) -> Iterator[None]:
    """Keep new processes from importing the program that was started, a command line with all its figures, say.

    They need it only if what they are sent, or something in it, was defined there.
    """
    main = sys.modules["__main__"]
    if b"__main__" not in pickle.dumps(setup):
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class ClientProcess:
    """`waiting` are tickets not sent yet; `busy` is the one being worked on. A client does one at a time.

    `failures` are ends of its process in a row without an answer, `early_faults` its faults before the run begins.
    """

    def __init__(self, client: int) -> None:
        self.client = client
        self.waiting: deque[Dispatch] = deque()
        self.busy: int | None = None
        self.ready = False
        self.failures = 0
        self.early_faults = 0
        self.process: BaseProcess | None = None
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection | None:
        """The one to the process; None if it was stopped."""
        return self._connection

    async def start(self, setup: ClientSetup, max_body_bytes: Callable[[], int]) -> Connection:
        """Start the process with its data, connected by a socket pair that has no name: nobody else can use it."""
        ours, theirs = connected_sockets()
        self.process = process_context().Process(
            target=run_client, args=(theirs, setup), daemon=True, name=f"client {self.client}"
        )
        with _without_main_module(setup):
            self.process.start()
        theirs.close()
        self._connection = await Connection.open(ours, max_body_bytes)
        return self._connection

    def send_next(self, session: LiveSession) -> None:
        """Send the next ticket that is still in flight, if the process is ready and has nothing to do."""
        while self.ready and self.busy is None and self.waiting and self._connection is not None:
            dispatch = self.waiting.popleft()
            if session.is_in_flight(dispatch.ticket):
                self.busy = dispatch.ticket
                self._connection.send(encode(*session.make_task(dispatch)))

    def cancel(self, ticket: int) -> None:
        """Tell the process that the ticket it works on was given up. It is sent its next one without waiting for it."""
        if self.busy == ticket and self._connection is not None:
            self.busy = None
            self._connection.send(encode(Cancelled(ticket)))

    def stop(self) -> None:
        """Close the connection and end the process, whatever it is doing."""
        self.ready, self.busy = False, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process.close()
            self.process = None
