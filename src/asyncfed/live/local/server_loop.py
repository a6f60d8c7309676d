"""ServerLoop: the connections to the clients, the wall clock, and one session between them.

All that arrived since the last turn of the event loop shares one commit; only then are new tickets sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

import numpy as np

from asyncfed.core.errors import ProtocolError
from asyncfed.core.record import UNSET
from asyncfed.core.types import Dispatch
from asyncfed.live.engine_protocol import EngineControl
from asyncfed.live.local.client_link import ClientConnection, ClientLink, LoopSettings
from asyncfed.live.local.client_program import client_log
from asyncfed.live.session import LiveSession
from asyncfed.live.wire import (
    Failed,
    Hello,
    Message,
    Result,
    WireError,
    decode_arrays,
    describe_exception,
)

L = TypeVar("L", bound=ClientLink)

TICK_SECONDS = 0.1
HELLO_AGAIN = "it said hello again"


class ServerLoop(Generic[L]):
    """Starts every client, and passes messages between them and the session until the run is over.

    Args:
        engine: the settings of the engine.
        session: the run.
        clients: one for each client of the run, in order.
        open_client: starts a client, or begins to: it says hello when it is ready.
        control: says when to stop, and is told how far the run is.
        leaves_to_restart: whether a client has left while it is started again, and joins when it is back; for clients
            that take long to start.
    """

    def __init__(
        self,
        engine: LoopSettings,
        session: LiveSession,
        clients: Sequence[L],
        open_client: Callable[[L], Awaitable[ClientConnection]],
        control: EngineControl,
        *,
        leaves_to_restart: bool = False,
    ) -> None:
        self._engine = engine
        self._session = session
        self._open_client = open_client
        self._control = control
        self._clients = {client.client: client for client in clients}
        self._leaves_to_restart = leaves_to_restart
        self._away: set[int] = set()  # clients that have left and are being started again
        self._readers: set[asyncio.Task[None]] = set()
        self._began = 0.0
        self._running = False
        self._draining = False
        self._commit_scheduled = False
        self._failure: BaseException | None = None
        self._over = asyncio.Event()

    async def run(self, begin: Callable[[], None]) -> None:
        """Start the processes, call `begin` when all are ready, run the session, and end the processes."""
        try:
            await asyncio.gather(*(self._start(client) for client in self._clients.values()))
            if not await self._wait_until_ready():
                return
            begin()
            self._began = time.monotonic() - self._session.state.elapsed
            self._running = True
            for client in self._clients.values():
                if self._leaves_to_restart:  # it may have been away when the server was killed
                    self._session.join(client.client, self._now())
                for _ in range(client.early_faults):
                    self._session.add_fault(client.client, HELLO_AGAIN, self._now())
            self._commit_and_send()
            while not self._over.is_set():
                await self._tick()
            if self._failure is not None:
                raise self._failure
        finally:
            self._running = False
            for client in self._clients.values():
                client.stop()
            await asyncio.gather(*self._readers, return_exceptions=True)

    async def _wait_until_ready(self) -> bool:
        """Wait for every client's hello. False if the run was interrupted before that."""
        latest = time.monotonic() + self._engine.start_seconds
        while missing := [client.client for client in self._clients.values() if not client.ready]:
            if self._control.stop_requested():
                return False
            if time.monotonic() > latest or self._failure is not None:
                raise self._failure or ProtocolError(
                    f"the processes of clients {missing[:5]} did not start within {self._engine.start_seconds:g} s. "
                    "Start fewer clients, or allow more start_seconds."
                )
            await asyncio.sleep(0.01)
        return True

    async def _tick(self) -> None:
        """What is done ten times a second, whether or not a message arrives."""
        due = self._session.next_timer
        seconds = TICK_SECONDS if due is None else min(TICK_SECONDS, max(due - self._now(), 0.0))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)
        for client in self._session.expire(self._now()):
            await self._restart(self._clients[client], None)
        self._commit_and_send()
        self._control.report_progress()
        if self._control.stop_requested() and not self._draining:
            self._draining = True
            await self._drain()

    async def _drain(self) -> None:
        """Accept what is being computed, for `drain_seconds` at most; send nothing more."""
        latest = time.monotonic() + self._engine.drain_seconds
        while any(client.busy is not None for client in self._clients.values()) and time.monotonic() < latest:
            if self._over.is_set():
                return
            await asyncio.sleep(0.02)
        self._commit_and_send()
        self._over.set()

    def _now(self) -> float:
        return time.monotonic() - self._began

    # ---- processes -------------------------------------------------------------------------------------------

    async def _start(self, client: L) -> None:
        connection = await self._open_client(client)
        reader = asyncio.create_task(self._read_messages(client, connection))
        self._readers.add(reader)
        reader.add_done_callback(self._readers.discard)

    async def _restart(self, client: L, loss_reason: str | None) -> None:
        """Replace a process that ended or hangs. The ticket it worked on is lost; the new one gets those that waited.

        `loss_reason` is None if the session has lost the ticket already.
        """
        session, now, ticket = self._session, self._now(), client.busy
        client.stop()
        if ticket is not None and loss_reason is not None:
            session.lose(ticket, loss_reason, now)
        client.failures += 1
        if client.failures > self._engine.restarts:
            session.leave(client.client, f"its process ended {client.failures} times in a row without an answer", now)
            self._away.discard(client.client)
        elif self._leaves_to_restart and client.client not in session.excluded:
            session.leave(client.client, loss_reason or "it is being started again", now)
            self._away.add(client.client)
        self._halt_without_clients()
        self._commit_and_send()
        stays = client.client in session.clients or client.client in self._away
        if stays and not session.finished and not self._draining:
            await self._start(client)

    def _halt_without_clients(self) -> None:
        if not len(self._session.clients) and not self._away:
            self._session.halt("starved: no client is left", self._now())

    # ---- messages --------------------------------------------------------------------------------------------

    async def _read_messages(self, client: L, connection: ClientConnection) -> None:
        """Read what a client sends until its connection ends. By then another may have taken its place."""
        try:
            while True:
                self._handle_message(client, *await connection.next_message())
        except ConnectionError:
            if client.connection is connection:
                await self._handle_disconnect(client, "its process ended")
        except WireError as error:
            if client.connection is connection:
                if self._running:
                    self._session.refuse_unreadable(client.client, str(error), self._now())
                    client.busy = None
                await self._handle_disconnect(client, None)
        except Exception as error:  # a full disk, a defect: the run stops with this error
            self._failure = error
            self._over.set()

    async def _handle_disconnect(self, client: L, loss_reason: str | None) -> None:
        if self._running and not self._session.finished:
            await self._restart(client, loss_reason)
        elif not self._running and not client.ready and self._failure is None:
            self._failure = ProtocolError(f"the process of client {client.client} ended before it was ready.")

    def _handle_message(self, client: L, message: Message, body: np.ndarray) -> None:
        if isinstance(message, Result):
            self._handle_result(client, message, body)
        elif isinstance(message, Failed):
            self._handle_failure(client, message)
        elif isinstance(message, Hello) and message.client == client.client:
            self._handle_hello(client)
        else:
            raise WireError(f"client {client.client} sent a {type(message).__name__} that it may not send.")
        self._schedule_commit()

    def _handle_result(self, client: L, result: Result, body: np.ndarray) -> None:
        placed, measured = None, None
        if result.placed is not UNSET:
            placed = client.placed_body(result.placed, self._session.max_result_bytes)
            if body.size:
                raise WireError("the body is said to lie in shared memory, and another one followed.")
        if not self._running:
            return
        if placed is not None:
            body, measured = self._session.copy_body(client.client, result, placed)
        self._session.accept(client.client, result, decode_arrays(result, body), self._now(), measured)
        client.failures = 0
        if result.ticket == client.busy:
            client.busy = None

    def _handle_failure(self, client: L, failed: Failed) -> None:
        """The client's own code raised an exception; its process ends next, and is then replaced."""
        client.ready, what = False, describe_exception(failed.error)
        if self._running and client.busy is not None:
            self._session.lose(client.busy, what, self._now())
            client.busy = None
        elif not self._running:
            self._failure = ProtocolError(
                f"client {client.client} could not start: {what}. Its log has the text: "
                f"{client_log(self._session.file, client.client)}"
            )

    def _handle_hello(self, client: L) -> None:
        """The first hello of a process says that it is ready; another is a fault."""
        if not client.ready:
            client.ready = True
            if self._running and client.client in self._away:
                self._away.discard(client.client)
                self._session.join(client.client, self._now())
        elif self._running:
            self._session.add_fault(client.client, HELLO_AGAIN, self._now())
        else:
            client.early_faults += 1

    def _schedule_commit(self) -> None:
        if not self._commit_scheduled:
            self._commit_scheduled = True
            asyncio.get_running_loop().call_soon(self._commit_and_send)

    def _commit_and_send(self) -> None:
        """Commit what happened; then, and not before, send the tickets that follow from it."""
        self._commit_scheduled = False
        if not self._running or self._over.is_set():
            return
        session = self._session
        try:
            self._halt_without_clients()
            self._send(session.commit(self._now()))
        except Exception as error:
            self._failure = error
            self._over.set()
            return
        if session.finished:
            self._over.set()

    def _send(self, dispatches: list[Dispatch]) -> None:
        """Bring clients what was decided: the end of those excluded, tickets that were given up, and new ones."""
        session = self._session
        for excluded in session.excluded:
            self._clients[excluded].stop()  # else it could keep the server busy with refusing
        for dispatch in session.take_cancelled():
            self._clients[dispatch.client].cancel(dispatch.ticket)
        for dispatch in dispatches:
            self._clients[dispatch.client].waiting.append(dispatch)
        if not self._draining:
            for client in self._clients.values():
                client.send_next(session)
