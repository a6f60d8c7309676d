"""The program of a node's worker process: imports the app once, then answers one message after another."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record, from_plain
from asyncfed.flower.node_program import NodeProgram
from asyncfed.flower.started_processes import began
from asyncfed.flower.worker_messages import (
    TAKEN,
    WorkerReply,
    WorkerRequest,
    from_plain_records,
    receive_record,
    send_record,
    to_plain_records,
)
from asyncfed.flower.worker_role import ROLE

WATCH_SECONDS = 0.5


class WorkerSettings(Record):
    """What a worker is told when it is started."""

    listener: int
    file: str
    module: str
    path: list[str]
    parent: int
    seconds: float


def main(given: dict[str, Any]) -> None:
    """Serve until nobody needs it any more."""
    settings = from_plain(given, WorkerSettings)
    ROLE.is_worker = True
    with socket.socket(fileno=settings.listener) as listener:
        Worker(settings, listener).serve()


class Worker:
    """Answers messages one at a time. A thread watches whether those it works for are still there."""

    def __init__(self, settings: WorkerSettings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._program: NodeProgram | None = None
        self._client: socket.socket | None = None
        self._parent_began = began(settings.parent)

    def serve(self) -> None:
        """Answer messages until none has come for so many seconds, or the app could not be imported."""
        threading.Thread(target=self._watch, daemon=True).start()
        self._listener.settimeout(self._settings.seconds)
        while True:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                break
            with connection, suppress(ConnectionError):
                connection.setblocking(True)
                connection.sendall(TAKEN)
                self._answer(connection)
            if self._program is None:
                break  # what was imported in part would be in the way of another try
        self._remove_file()

    def _answer(self, connection: socket.socket) -> None:
        request = receive_record(connection, WorkerRequest)
        self._client = connection
        try:
            reply = self._reply_to(request)
        except Exception as error:
            traceback.print_exc()  # into this node's log; the server is sent the class alone
            reply = WorkerReply({}, {}, type(error).__name__)
        finally:
            self._client = None
        send_record(connection, reply)

    def _reply_to(self, request: WorkerRequest) -> WorkerReply:
        if self._program is None:
            import_module(self._settings.module)
            self._program = ROLE.program
            if self._program is None:
                raise ConfigError(f"{self._settings.module} calls client_app no more, though it did a moment ago.")
        state = from_plain_records(request.state)
        content = self._program.reply(request.kind, from_plain_records(request.content), request.node, state)
        return WorkerReply(to_plain_records(content), to_plain_records(state))

    def _watch(self) -> None:
        """End at once when the SuperNode is gone, or the ClientApp that waits for an answer: nobody else wants it."""
        while True:
            time.sleep(WATCH_SECONDS)
            client = self._client
            if not self._has_parent() or (client is not None and _has_gone(client)):
                self._remove_file()
                os._exit(0)

    def _has_parent(self) -> bool:
        """Whether the SuperNode runs: a zombie does not, nor does another program that has got its number."""
        if sys.platform.startswith("linux"):
            return self._parent_began is not None and began(self._settings.parent) == self._parent_began
        try:  # where asking for the moment takes a process each time
            os.kill(self._settings.parent, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def _remove_file(self) -> None:
        with suppress(FileNotFoundError):
            Path(self._settings.file).unlink()


def _has_gone(connection: socket.socket) -> bool:
    """Whether the other side has closed: it sends nothing while it waits."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
