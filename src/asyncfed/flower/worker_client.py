"""NodeWorker: the process that keeps a node's data, model code and kernels loaded between two messages.

Flower starts a ClientApp for every message. It passes the message on to a worker over a local socket; the first one of
a run starts it. A worker belongs to one SuperNode, one run and one app, so that another run loads everything anew. It
ends when its SuperNode is gone, when nothing came for `worker-seconds`, and when the ClientApp it works for is gone.

This module is imported for every message, and imports next to nothing.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flwr.app import Context, RecordDict

from asyncfed.core.errors import ConfigError
from asyncfed.flower.node_app import NodeError
from asyncfed.flower.worker_messages import (
    TAKEN,
    WorkerReply,
    WorkerRequest,
    from_plain_records,
    receive_record,
    send_record,
    to_plain_records,
)

if TYPE_CHECKING:
    from asyncfed.flower.node_program import NodeProgram

log = logging.getLogger("flwr")
SETTING = "worker-seconds"
DEFAULT_SECONDS = 600.0
MAX_STARTS = 3
MAX_PATH_BYTES = 100
"""Systems take socket paths of 103 bytes or more."""
BACKLOG = 8
START = """
import json, sys
settings = json.loads(sys.argv[1])
sys.path[:] = settings["path"]
from asyncfed.flower.node_worker import main
main(settings)
"""
"""Modules are found where the ClientApp finds them: not in the working directory, which others may write to (`-P`)."""


class WorkerEnded(Exception):
    """The worker ended while it worked on a message: killed, out of memory, or the whole machine is going down."""


class NoWorker(Exception):
    """No worker can be had here; the message says why. The ClientApp then answers by itself."""


def read_worker_seconds(node: Mapping[str, Any]) -> float:
    """How long a worker of this node waits for its next message before it ends; 0: there is none.

    >>> read_worker_seconds({}), read_worker_seconds({"worker-seconds": 0})
    (600.0, 0.0)
    """
    seconds = node.get(SETTING, DEFAULT_SECONDS)
    if type(seconds) not in (int, float) or not 0 <= seconds < float("inf"):
        raise ConfigError(
            f"This node's {SETTING} is {seconds!r}; it must be a number of seconds, or 0 for no worker. "
            f"Start the SuperNode with --node-config '… {SETTING}={DEFAULT_SECONDS:g}', or without it."
        )
    return float(seconds)


class NodeWorker:
    """The worker of one app's module, for the SuperNode that this process was started by."""

    def __init__(self, module: str, parent: int | None = None) -> None:
        self._module = module
        self._parent = os.getppid() if parent is None else parent

    def answer(self, kind: str, content: RecordDict, context: Context) -> RecordDict:
        """The content of the reply to a message, computed by the worker."""
        node = dict(context.node_config)
        request = WorkerRequest(kind, to_plain_records(content), node, to_plain_records(context.state))
        with self._connect(context.run_id, node) as connection:
            try:
                send_record(connection, request)
                reply = receive_record(connection, WorkerReply)
            except ConnectionError as error:
                raise WorkerEnded("the worker ended while it worked on this message; see this node's log") from error
        if reply.error is not None:
            raise NodeError(reply.error)  # its text is in this node's log already
        for name, record in from_plain_records(reply.state).items():
            context.state[name] = record
        return from_plain_records(reply.content)

    @contextmanager
    def _connect(self, run: int, node: Mapping[str, Any]) -> Iterator[socket.socket]:
        """A connection that the worker has taken; one that was just ending is replaced."""
        seconds = read_worker_seconds(node)
        if seconds == 0.0:
            raise NoWorker(f"{SETTING} is 0")
        if _packages_are_temporary():
            raise NoWorker("Flower has installed packages for this message alone")
        folder = _private_folder()
        identity = [self._module, sys.path, sys.executable, self._parent, run, sorted(node.items())]
        file = folder / f"{sha256(json.dumps(identity).encode()).hexdigest()[:32]}.sock"
        if len(os.fsencode(file)) > MAX_PATH_BYTES:
            raise NoWorker(f"the path of {folder} is too long for sockets; set XDG_RUNTIME_DIR to a shorter one")
        for _ in range(MAX_STARTS):
            with socket.socket(socket.AF_UNIX) as connection:
                with _locked(folder):
                    if not _reaches(connection, file):
                        _remove_dead(folder)
                        self._start(file, seconds)
                        connection.connect(str(file))
                if _is_taken(connection):
                    yield connection
                    return
        raise WorkerEnded(f"the worker ended {MAX_STARTS} times before it took a message; see this node's log")

    def _start(self, file: Path, seconds: float) -> None:
        """Start it with a socket that listens already, so that nobody has to wait until it is ready to be called."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(file))
            listener.listen(BACKLOG)
            settings = {
                "listener": listener.fileno(),
                "file": str(file),
                "module": self._module,
                "path": sys.path,
                "parent": self._parent,
                "seconds": seconds,
            }
            subprocess.Popen(
                [sys.executable, "-P", "-c", START, json.dumps(settings)],
                pass_fds=(listener.fileno(),),
                stdin=subprocess.DEVNULL,
            )


class WorkerOrOwn:
    """Answers by the worker, or in this process where no worker can be had, which is logged."""

    def __init__(self, module: str, make_program: Callable[[], NodeProgram]) -> None:
        self._worker = NodeWorker(module)
        self._make_program = make_program

    def answer(self, kind: str, content: RecordDict, context: Context) -> RecordDict:
        """The content of the reply to a message."""
        try:
            return self._worker.answer(kind, content, context)
        except NoWorker as reason:
            log.info("asyncfed: this message is answered without a worker: %s", reason)
        return self._make_program().answer(kind, content, context)


def _private_folder() -> Path:
    """The folder for the sockets of this user's workers: nobody else may read or write it."""
    own = os.getuid()
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"asyncfed-{own}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise NoWorker(f"{folder} cannot be made ({error.strerror})") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != own or stat.S_IMODE(found.st_mode) & 0o077:
        raise NoWorker(f"{folder} is not a folder of this user's alone (0700)")
    return folder


def _packages_are_temporary() -> bool:
    """Whether Flower has installed the app's dependencies, into a folder that it deletes after the message."""
    home = Path(os.environ.get("FLWR_HOME") or Path.home() / ".flwr")
    return any(path.endswith("site-packages") and Path(path).is_relative_to(home) for path in sys.path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _reaches(connection: socket.socket, file: Path) -> bool:
    try:
        connection.connect(str(file))
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    return True


def _is_taken(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == TAKEN
    except ConnectionError:
        return False


def _remove_dead(folder: Path) -> None:
    """Remove the sockets of workers that were killed."""
    for file in folder.glob("*.sock"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(str(file))
            except ConnectionRefusedError:
                with suppress(FileNotFoundError):
                    file.unlink()
            except OSError:  # it has a queue, or has just gone
                continue
