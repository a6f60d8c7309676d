"""Connection: messages to and from one client's process, without a copy of their arrays.

What arrives is read into the memory in which it will be used; what is sent is read from the model's own memory, which
is the same for all clients that are sent the same version.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from asyncfed.kernels.recycled_memory import empty
from asyncfed.live.wire import MAX_HEADER_BYTES, PREFIX_BYTES, Message, WireError, decode_header, decode_prefix

BEGINNING = PREFIX_BYTES + MAX_HEADER_BYTES
"""Bytes: what is read before it is known how long a message is. The largest prefix with header fits."""

AT_ONCE = 2**19
"""Bytes that are given to the transport at a time: it copies what the system does not take at once."""

MOST_WAITING = 8
"""When so many messages wait to be handled, no more are read."""

SOCKET_BYTES = 2**22
"""What the system is asked to hold of a message that is on its way; it may hold less."""

NOTHING = np.empty(0, np.uint8)


def connected_sockets() -> tuple[socket.socket, socket.socket]:
    """Two ends of a connection that has no name: nobody else can use it."""
    pair = socket.socketpair()
    for end in pair:
        with suppress(OSError):  # some systems refuse what is more than they would hold
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
    return pair


class Connection(asyncio.BufferedProtocol):
    """Made by `open`. `send` never waits; `next_message` does.

    Args:
        max_body_bytes: how long the body of a message may be, asked for each.
    """

    def __init__(self, max_body_bytes: Callable[[], int]) -> None:
        self._max_body_bytes = max_body_bytes
        self._transport: asyncio.Transport | None = None
        self._beginning = bytearray(BEGINNING)
        self._filled = 0
        self._lengths: tuple[int, int] | None = None
        self._message: Message | None = None
        self._body = NOTHING
        self._body_filled = 0
        self._received: deque[tuple[Message, np.ndarray]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._end: Exception | None = None
        self._reading = True
        self._unsent: deque[memoryview] = deque()
        self._writing = True

    @classmethod
    async def open(cls, end: socket.socket, max_body_bytes: Callable[[], int]) -> Connection:
        """The connection of which this is our end."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(max_body_bytes), sock=end)
        return connection

    # ---- receiving -----------------------------------------------------------------------------------------------

    async def next_message(self) -> tuple[Message, np.ndarray]:
        """The next message and its body.

        Raises:
            WireError: what was received is no message.
            ConnectionError: the other end is gone, and no message is left.
        """
        while not self._received:
            if self._end is not None:
                raise self._end
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        message = self._received.popleft()
        if not (self._reading or self._received or self._end) and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()
        return message

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes belong: into a body that has begun, or else to the beginning of a message."""
        if self._message is not None:
            return self._body.data[self._body_filled :]
        return memoryview(self._beginning)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """So many bytes have arrived."""
        if self._message is not None:
            self._body_filled += nbytes
            if self._body_filled == len(self._body):
                message, body = self._message, self._body
                self._message, self._body = None, NOTHING  # what was delivered is not kept until the next one arrives
                self._deliver(message, body)
            return
        self._filled += nbytes
        try:
            self._parse()
        except WireError as error:
            self._stop(error)

    def _parse(self) -> None:
        """Take the messages out of what has arrived, and begin with the body of one that is not all there."""
        arrived, at = memoryview(self._beginning)[: self._filled], 0
        while self._message is None and len(arrived) - at >= PREFIX_BYTES:
            if self._lengths is None:
                self._lengths = decode_prefix(bytes(arrived[at : at + PREFIX_BYTES]), self._max_body_bytes())
            header, length = self._lengths
            if len(arrived) - at < PREFIX_BYTES + header:
                break
            self._lengths = None
            at += PREFIX_BYTES + header
            message = decode_header(bytes(arrived[at - header : at]))
            body = empty(length, np.dtype(np.uint8))
            there = min(length, len(arrived) - at)
            body.data[:there] = arrived[at : at + there]
            at += there
            if there == length:
                self._deliver(message, body)
            else:
                self._message, self._body, self._body_filled = message, body, there
        rest = bytes(arrived[at:])
        self._beginning[: len(rest)] = rest
        self._filled = len(rest)

    def _deliver(self, message: Message, body: np.ndarray) -> None:
        self._received.append((message, body))
        if len(self._received) >= MOST_WAITING and self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _stop(self, error: Exception) -> None:
        """Nothing more is received."""
        if self._end is None:
            self._end = error
            if self._transport is not None and self._reading:
                self._reading = False
                self._transport.pause_reading()
            self._wake()

    # ---- sending -------------------------------------------------------------------------------------------------

    def send(self, pieces: list[bytes | memoryview]) -> None:
        """Send these bytes after all that is being sent. They must not change until they are, nor their memory."""
        if sum(map(len, pieces)) <= AT_ONCE and len(pieces) > 1:
            pieces = [b"".join(pieces)]
        self._unsent.extend(map(memoryview, pieces))
        self._write()

    def _write(self) -> None:
        while self._unsent and self._writing and self._transport is not None:
            piece = self._unsent.popleft()
            if len(piece) > AT_ONCE:
                self._unsent.appendleft(piece[AT_ONCE:])
            self._transport.write(piece[:AT_ONCE])

    def pause_writing(self) -> None:
        """The system holds as much as it can."""
        self._writing = False

    def resume_writing(self) -> None:
        """The system has room again."""
        self._writing = True
        self._write()

    # ---- beginning and end ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask to be told whenever the system does not take all that it is given."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other end is gone, or `close` was called."""
        self._transport = None
        self._unsent.clear()
        if self._end is None:
            self._end = ConnectionResetError("the connection has ended")
        self._wake()

    def close(self) -> None:
        """End the connection; what was not sent yet is dropped."""
        self._unsent.clear()
        if self._transport is not None:
            self._transport.abort()
