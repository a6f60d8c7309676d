"""What the server's loop needs of a client, wherever the client runs: a connection, and the tickets it holds."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import numpy as np

from asyncfed.core.types import Dispatch
from asyncfed.live.session import LiveSession
from asyncfed.live.wire import Message

NOTHING_SHARED = "the body is said to lie in shared memory; this client has none."


class LoopSettings(Protocol):
    """The settings of an engine that the loop goes by; `LocalEngine` says what each means."""

    @property
    def drain_seconds(self) -> float:
        """How long an interrupted server waits for what is being computed."""
        ...

    @property
    def start_seconds(self) -> float:
        """How long clients may take to start."""
        ...

    @property
    def restarts(self) -> int:
        """How often in a row a client may end without an answer."""
        ...


class ClientConnection(Protocol):
    """What one client sends, from its start to its end."""

    async def next_message(self) -> tuple[Message, np.ndarray]:
        """The next message and its body.

        Raises:
            WireError: what was received is no message.
            ConnectionError: the client is gone, and no message is left.
        """
        ...


class ClientLink(Protocol):
    """`waiting` are tickets not sent yet; `busy` is the one being worked on. A client does one at a time.

    `failures` are its ends in a row without an answer, `early_faults` its faults before the run begins.
    """

    client: int
    waiting: deque[Dispatch]
    busy: int | None
    ready: bool
    failures: int
    early_faults: int

    @property
    def connection(self) -> ClientConnection | None:
        """The one that is open; None if the client was stopped."""
        ...

    def send_next(self, session: LiveSession) -> None:
        """Send the next ticket that is still in flight, if the client is ready and has nothing to do."""
        ...

    def placed_body(self, length: int, max_bytes: int) -> np.ndarray:
        """A result's body of so many bytes, which lies in memory that the client shares, and can still change.

        Raises:
            WireError: it cannot lie there; `NOTHING_SHARED`, if there is no such memory.
        """
        ...

    def cancel(self, ticket: int) -> None:
        """Tell the client that the ticket it works on was given up. It is sent its next one without waiting for it."""
        ...

    def stop(self) -> None:
        """Close the connection and end the client, whatever it is doing."""
        ...
