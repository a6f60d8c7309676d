"""The server of a live run on one machine: lines to the clients' processes, the wall clock, and one session.

All that came in since the last turn of the loop shares one commit; only then is new work sent out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from asyncfed.core.errors import ProtocolError
from asyncfed.live.checks import Reply
from asyncfed.live.engine_protocol import Orders
from asyncfed.live.local.client_process import Seat
from asyncfed.live.session import LiveSession
from asyncfed.live.wire import PREFIX_BYTES, Hello, Result, Task, WireError, array_in, lengths, message_in
from asyncfed.problems.protocol import ShardedProblem

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from asyncfed.live.local.local_engine import LocalEngine

LOOK_SECONDS = 0.1


class Hub:
    """Seats for all clients around one session."""

    def __init__(self, engine: LocalEngine, session: LiveSession, problem: ShardedProblem, orders: Orders) -> None:
        self._engine = engine
        self._session = session
        self._problem = problem
        self._orders = orders
        self._seats = {client: Seat(client, engine.pace(client)) for client in range(problem.num_clients)}
        self._most_bytes = problem.num_params * problem.dtype.itemsize
        self._rehearsal = problem.init(0)
        self._listeners: set[asyncio.Task[None]] = set()
        self._began = 0.0
        self._running = False
        self._draining = False
        self._flush_waits = False
        self._failure: BaseException | None = None
        self._over = asyncio.Event()

    async def run(self, begin: Callable[[], None]) -> None:
        """From the first process to the last."""
        try:
            await asyncio.gather(*(self._seat(seat) for seat in self._seats.values()))
            if not await self._everybody_ready():
                return
            begin()
            self._began = time.monotonic() - self._session.state.elapsed
            self._running = True
            self._flush()
            while not self._over.is_set():
                await self._turn()
            if self._failure is not None:
                raise self._failure
        finally:
            self._running = False
            for seat in self._seats.values():
                seat.hang_up()
            await asyncio.gather(*self._listeners, return_exceptions=True)

    async def _everybody_ready(self) -> bool:
        """Wait for all hellos. False if the run was interrupted before that."""
        latest = time.monotonic() + self._engine.start_seconds
        while missing := [seat.client for seat in self._seats.values() if not seat.ready]:
            if self._orders.stop():
                return False
            if time.monotonic() > latest or self._failure is not None:
                raise self._failure or ProtocolError(
                    f"the processes of clients {missing[:5]} did not start within {self._engine.start_seconds:g} s. "
                    "Start fewer clients, or allow more start_seconds."
                )
            await asyncio.sleep(0.01)
        return True

    async def _turn(self) -> None:
        """What is done ten times a second, whether or not anything comes in."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), LOOK_SECONDS)
        for client in self._session.expire(self._now()):
            await self._replace(self._seats[client], "")
        self._flush()
        self._orders.look()
        if self._orders.stop() and not self._draining:
            self._draining = True
            await self._drain()

    async def _drain(self) -> None:
        """Take what is being computed, for a while; send nothing more."""
        latest = time.monotonic() + self._engine.drain_seconds
        while any(seat.busy is not None for seat in self._seats.values()) and time.monotonic() < latest:
            if self._over.is_set():
                return
            await asyncio.sleep(0.02)
        self._flush()
        self._over.set()

    def _now(self) -> float:
        return time.monotonic() - self._began

    # ---- processes -------------------------------------------------------------------------------------------

    async def _seat(self, seat: Seat) -> None:
        reader = await seat.start(self._problem.shard(seat.client), self._rehearsal)
        listener = asyncio.create_task(self._listen(seat, seat.process, reader))
        self._listeners.add(listener)
        listener.add_done_callback(self._listeners.discard)

    async def _replace(self, seat: Seat, reason: str) -> None:
        """The process is gone or of no use. What it had in hand is lost; its successor gets what had waited."""
        session, now, ticket = self._session, self._now(), seat.busy
        seat.hang_up()
        if ticket is not None and reason:
            session.lose(ticket, reason, now)
        seat.deaths += 1
        if seat.deaths > self._engine.restarts:
            session.leave(seat.client, f"its process ended {seat.deaths} times in a row without an answer", now)
        self._stop_if_deserted()
        self._flush()
        if seat.client in session.clients and not session.finished and not self._draining:
            await self._seat(seat)

    def _stop_if_deserted(self) -> None:
        if not len(self._session.clients):
            self._session.halt("starved: no client is left", self._now())

    # ---- messages --------------------------------------------------------------------------------------------

    async def _listen(self, seat: Seat, process: BaseProcess | None, reader: asyncio.StreamReader) -> None:
        """Read the messages of one process until its line ends. By then another one may have taken the seat."""
        try:
            while True:
                await self._take_one(seat, reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            if seat.process is process:
                await self._lost_line(seat, "its process ended")
        except WireError as error:
            if seat.process is process:
                if self._running:
                    self._session.unreadable(seat.client, str(error), self._now())
                    seat.busy = None
                await self._lost_line(seat, "")
        except Exception as error:  # a full disk, a defect: the run stops, and says so
            self._failure = error
            self._over.set()

    async def _lost_line(self, seat: Seat, reason: str) -> None:
        if self._running and not self._session.finished:
            await self._replace(seat, reason)
        elif not self._running and not seat.ready:
            self._failure = ProtocolError(f"the process of client {seat.client} ended before it was ready.")

    async def _take_one(self, seat: Seat, reader: asyncio.StreamReader) -> None:
        header_bytes, body_bytes = lengths(await reader.readexactly(PREFIX_BYTES), self._most_bytes)
        message = message_in(await reader.readexactly(header_bytes))
        body = await reader.readexactly(body_bytes)
        if isinstance(message, Task) or (isinstance(message, Hello) and message.client != seat.client):
            raise WireError(f"client {seat.client} sent {type(message).__name__}, which is not for it to say.")
        if isinstance(message, Hello):
            seat.ready = True
        else:
            self._take(seat, message, body)
        self._flush_soon()

    def _take(self, seat: Seat, result: Result, body: bytes) -> None:
        if not self._running:
            return
        params = array_in(result.dtype, body)
        reply = Reply(
            result.session, result.ticket, seat.client, params, result.duration, result.num_examples, result.metrics
        )
        self._session.accept(reply, self._now())
        seat.deaths = 0
        if result.ticket == seat.busy:
            seat.busy = None

    def _flush_soon(self) -> None:
        if not self._flush_waits:
            self._flush_waits = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Commit what happened; then, and not before, hand out what follows from it."""
        self._flush_waits = False
        if not self._running or self._over.is_set():
            return
        try:
            self._stop_if_deserted()
            assignments = self._session.commit(self._now())
        except Exception as error:
            self._failure = error
            self._over.set()
            return
        for assignment in assignments:
            self._seats[assignment.client].waiting.append(assignment)
        if not self._draining:
            for seat in self._seats.values():
                seat.send_next()
        if self._session.finished:
            self._over.set()
