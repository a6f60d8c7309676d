"""ServerLoop: the connections to the clients' processes, the wall clock, and one session between them.

All that arrived since the last turn of the event loop shares one commit; only then are new tickets sent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from asyncfed.core.errors import ProtocolError
from asyncfed.live.engine_protocol import EngineControl
from asyncfed.live.local.client_process import ClientProcess, Sharing
from asyncfed.live.local.client_program import ClientSetup
from asyncfed.live.local.connection import Connection
from asyncfed.live.local.shared_memory import SharedModels
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
from asyncfed.problems.protocol import ShardedProblem

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from asyncfed.live.local.local_engine import LocalEngine

TICK_SECONDS = 0.1
HELLO_AGAIN = "it said hello again"


class ServerLoop:
    """Starts a process for every client, and passes messages between them and the session until the run is over."""

    def __init__(
        self, engine: LocalEngine, session: LiveSession, problem: ShardedProblem, control: EngineControl
    ) -> None:
        self._engine = engine
        self._session = session
        self._problem = problem
        self._control = control
        self._sharing = self._share_memory()
        self._clients = {client: ClientProcess(client, self._sharing) for client in range(problem.num_clients)}
        self._corrected = session.sends_corrections()
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
            if self._sharing is not None:
                self._sharing.models.close()

    def _share_memory(self) -> Sharing | None:
        """Put the model where clients can read it; None if it is small, or the system cannot do that."""
        session, least_bytes = self._session, self._engine.shared_bytes
        model_bytes = session.state.params.nbytes
        if least_bytes is None or model_bytes < least_bytes:
            return None
        models = SharedModels.create(model_bytes, self._problem.num_clients)
        if models is None:
            return None
        session.keep_models_in(models)
        return Sharing(models, session.expected_result_bytes, least_bytes)

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

    async def _start(self, client: ClientProcess) -> None:
        connection = await client.start(self._setup(client.client), lambda: self._session.max_result_bytes)
        reader = asyncio.create_task(self._read_messages(client, client.process, connection))
        self._readers.add(reader)
        reader.add_done_callback(self._readers.discard)

    def _setup(self, client: int) -> ClientSetup:
        session, shard, slowdown = self._session, self._problem.shard(client), self._engine.slowdown(client)
        first = session.first_model(client)
        return ClientSetup(client, shard, first, slowdown, session.uplinks, self._corrected, self._log_of(client))

    def _log_of(self, client: int) -> str:
        """Where a client writes what its own code raises: beside the run's file, made when it is first needed."""
        file = self._session.file
        return "" if file is None else str(file.with_name(f"{file.name}.clients") / f"client-{client}.log")

    async def _restart(self, client: ClientProcess, loss_reason: str | None) -> None:
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
        self._halt_without_clients()
        self._commit_and_send()
        if client.client in session.clients and not session.finished and not self._draining:
            await self._start(client)

    def _halt_without_clients(self) -> None:
        if not len(self._session.clients):
            self._session.halt("starved: no client is left", self._now())

    # ---- messages --------------------------------------------------------------------------------------------

    async def _read_messages(self, client: ClientProcess, process: BaseProcess | None, connection: Connection) -> None:
        """Read what one process sends until its connection ends. By then another may have taken its place."""
        try:
            while True:
                self._handle_message(client, *await connection.next_message())
        except ConnectionError:
            if client.process is process:
                await self._handle_disconnect(client, "its process ended")
        except WireError as error:
            if client.process is process:
                if self._running:
                    self._session.refuse_unreadable(client.client, str(error), self._now())
                    client.busy = None
                await self._handle_disconnect(client, None)
        except Exception as error:  # a full disk, a defect: the run stops with this error
            self._failure = error
            self._over.set()

    async def _handle_disconnect(self, client: ClientProcess, loss_reason: str | None) -> None:
        if self._running and not self._session.finished:
            await self._restart(client, loss_reason)
        elif not self._running and not client.ready and self._failure is None:
            self._failure = ProtocolError(f"the process of client {client.client} ended before it was ready.")

    def _handle_message(self, client: ClientProcess, message: Message, body: np.ndarray) -> None:
        if isinstance(message, Result):
            self._handle_result(client, message, body)
        elif isinstance(message, Failed):
            self._handle_failure(client, message)
        elif isinstance(message, Hello) and message.client == client.client:
            self._handle_hello(client)
        else:
            raise WireError(f"client {client.client} sent a {type(message).__name__} that it may not send.")
        self._schedule_commit()

    def _handle_result(self, client: ClientProcess, result: Result, body: np.ndarray) -> None:
        placed, measured = client.placed_body(result, self._session.max_result_bytes), None
        if not self._running:
            return
        if placed is not None:
            if body.size:
                raise WireError("the body is said to lie in shared memory, and another one followed.")
            body, measured = self._session.copy_body(client.client, result, placed)
        self._session.accept(client.client, result, decode_arrays(result, body), self._now(), measured)
        client.failures = 0
        if result.ticket == client.busy:
            client.busy = None

    def _handle_failure(self, client: ClientProcess, failed: Failed) -> None:
        """The client's own code raised an exception; its process ends next, and is then replaced."""
        client.ready, what = False, describe_exception(failed.error)
        if self._running and client.busy is not None:
            self._session.lose(client.busy, what, self._now())
            client.busy = None
        elif not self._running:
            self._failure = ProtocolError(
                f"client {client.client} could not start: {what}. Its log has the text: {self._log_of(client.client)}"
            )

    def _handle_hello(self, client: ClientProcess) -> None:
        """The first hello of a process says that it is ready; another is a fault."""
        if not client.ready:
            client.ready = True
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
            dispatches = session.commit(self._now())
        except Exception as error:
            self._failure = error
            self._over.set()
            return
        for excluded in session.excluded:
            self._clients[excluded].stop()  # else it could keep the server busy with refusing
        for dispatch in session.take_cancelled():
            self._clients[dispatch.client].cancel(dispatch.ticket)
        for dispatch in dispatches:
            self._clients[dispatch.client].waiting.append(dispatch)
        if not self._draining:
            for client in self._clients.values():
                client.send_next(session)
        if session.finished:
            self._over.set()
