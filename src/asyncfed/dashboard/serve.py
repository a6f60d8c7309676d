"""The dashboard's web server: a free port, the address with its token, and uvicorn."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from asyncfed.core.errors import ConfigError
from asyncfed.dashboard.web_app import Dashboard
from asyncfed.kernels.event_columns import read_event_columns

USUAL_PORT = 8050

NICENESS = 19
"""The runs that are watched go first where the processor is short."""


def listen(host: str, port: int) -> socket.socket:
    """A socket on this port; of port 0, on the usual one or, if that is taken, on any.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (port,) if port else (USUAL_PORT, 0):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen()  # two may have bound the same port: the second is told only now
            return listener
        except OSError as error:
            listener.close()
            failure = error
    raise ConfigError(
        f"The dashboard cannot listen on {host}:{port or USUAL_PORT} ({failure.strerror}). Choose another --port, or "
        "leave it out and a free one is found."
    )


def address_of(listener: socket.socket, token: str) -> str:
    """The address to open, with the token."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/?token={token}"


class DashboardServer(uvicorn.Server):
    """The web server of a dashboard; when it ends, the streams of changes end first, for they never would."""

    def __init__(self, dashboard: Dashboard) -> None:
        super().__init__(
            uvicorn.Config(
                dashboard.app(),
                log_level="warning",
                access_log=False,  # addresses hold tokens
                server_header=False,
                timeout_graceful_shutdown=5,
                limit_concurrency=2000,
            )
        )
        self._stream = dashboard.stream

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then everything else."""
        self._stream.close()
        await super().shutdown(sockets)


def serve(dashboard: Dashboard, listener: socket.socket, started: Callable[[], None]) -> None:
    """Answer requests until Ctrl-C. `started` is called when the server is about to listen."""
    with suppress(OSError, AttributeError):
        os.nice(NICENESS)
    threading.Thread(target=read_event_columns, args=(b"", 0), daemon=True).start()  # load what is compiled
    started()
    with suppress(KeyboardInterrupt):
        DashboardServer(dashboard).run([listener])
