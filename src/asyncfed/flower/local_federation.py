"""A Flower federation on this machine: a SuperLink and SuperNodes as processes, with TLS and node authentication."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from asyncfed.core.errors import ConfigError
from asyncfed.flower import start_bound
from asyncfed.flower.credentials import make_certificates, make_node_key
from asyncfed.flower.folder_lock import FolderLock
from asyncfed.flower.private_files import PRIVATE_UMASK, make_private_folder, narrow, open_private_log, write_private
from asyncfed.flower.started_processes import MARK, STOP_SECONDS, StartedProcesses, end_leftovers

CONNECTION = "asyncfed"
"""What `flwr run APP asyncfed` calls this SuperLink."""

HOST = "127.0.0.1"
START_SECONDS = 60.0

ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",  # once a second otherwise: a good part of the time an update takes
}


OWN_FILES = {"certificates", "home", "keys", "lock", "logs", "processes.json", "runs"}
"""What a federation has in its folder, beside its database."""

DATABASE = "state.db"


class Federation:
    """All files are in one folder: `certificates/`, `keys/`, `home/` (Flower's own), `logs/`, `state.db`.

    Only their owner may read them. A lock on the folder is held while it runs, and `processes.json` says what it has
    started: if it is killed, its processes end with it where the operating system can do that (Linux), and the next
    one on this folder ends what was left. `ended_before` says what that was.

    `restart_proof` runs the ServerApp outside the SuperLink, so that a run outlives a SuperLink that is restarted.
    """

    def __init__(self, folder: Path, num_nodes: int, *, restart_proof: bool = False, port: int | None = None) -> None:
        if num_nodes < 1:
            raise ConfigError(f"nodes is {num_nodes}; a federation needs at least 1.")
        self.folder = folder.resolve()
        self.num_nodes = num_nodes
        self.restart_proof = restart_proof
        self.port = port or free_port()
        self.home = self.folder / "home"
        self.certificates = self.folder / "certificates"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ended_before: list[str] = []
        self._lock = FolderLock(self.folder / "lock")
        self._started = StartedProcesses(self.folder / "processes.json")
        self._before: Any = signal.SIG_DFL

    @property
    def address(self) -> str:
        """Host and port of the SuperLink."""
        return f"{HOST}:{self.port}"

    # ---- all at once -----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start it; whatever ends the block, also a SIGTERM to this process, ends its processes too."""
        self._before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        signal.signal(signal.SIGTERM, self._before)

    def start(self) -> None:
        """Take the folder, start the SuperLink, then every node, with a registered key of its own."""
        make_private_folder(self.folder)
        if (owner := self.folder.stat().st_uid) != os.getuid():
            raise ConfigError(
                f"{self.folder} belongs to user {owner}, and you are {os.getuid()}: its owner could read the keys, and "
                "say which processes are ended as left over. Name a folder of your own with --folder."
            )
        self._lock.take()
        left = end_leftovers(self._started.file)
        self.ended_before = left or []
        self.prepare()
        self._started.write()
        self.start_superlink()
        if left is not None:
            self._replace_keys_in_use()
        for client in range(self.num_nodes):
            self.start_node(client)

    def prepare(self) -> None:
        """Write certificates, and Flower's configuration with this SuperLink in it."""
        self._narrow_existing()
        for name in ("home", "keys", "logs"):
            make_private_folder(self.folder / name)
        make_certificates(self.certificates)
        configuration = (
            f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\n'
            f'address = "{self.address}"\nroot-certificates = "{self.certificates / "ca.crt"}"\n'
        )
        write_private(self.home / "config.toml", configuration.encode())

    def _narrow_existing(self) -> None:
        """Make private what an older version left readable; the folder itself only if nothing else is in it."""
        inside = list(self.folder.iterdir())
        own = [path for path in inside if path.name in OWN_FILES or path.name.startswith(DATABASE)]
        narrow([self.folder] if len(own) == len(inside) else own)

    def wait(self, report: Callable[[str], None]) -> None:
        """Wait until Ctrl-C. A process that ends by itself is reported, once."""
        reported: set[str] = set()
        while True:
            for name in set(self.ended()) - reported:
                reported.add(name)
                report(f"{name} has ended; see {self.folder / 'logs' / name}.log")
            time.sleep(0.5)

    def stop(self) -> None:
        """End every process, nodes first, and give the folder up."""
        for name in reversed(list(self.processes)):
            self.end(name)
        if self._lock.is_held:
            self._started.clear()
            self._lock.release()

    # ---- one by one ------------------------------------------------------------------------------------------

    def start_superlink(self) -> None:
        """Start the SuperLink, and wait until it answers."""
        files = self.certificates
        self.spawn(
            "superlink",
            *("flower-superlink", "--host", HOST, "--port", str(self.port)),
            *("--ssl-ca-certfile", str(files / "ca.crt")),
            *("--ssl-certfile", str(files / "server.crt"), "--ssl-keyfile", str(files / "server.key")),
            *("--database", str(self.folder / DATABASE), "--enable-supernode-auth"),
            *("--isolation", "process" if self.restart_proof else "subprocess"),
            "--disable-runtime-dependency-installation",
        )
        self._wait_for_superlink()
        if self.restart_proof and "superexec" not in self.processes:
            self.start_superexec()

    def start_superexec(self) -> None:
        """Start the process that starts ServerApps on request; needed only with `restart_proof`."""
        self.spawn(
            "superexec",
            *("flower-superexec", "--runtime-api-address", self.address),
            *("--root-certificates", str(self.certificates / "ca.crt")),
        )

    def start_node(self, client: int) -> None:
        """Start the node that holds this client's data alone. Its key is made and registered if it has none."""
        key = self.folder / "keys" / f"node-{client}"
        if not key.exists():
            number = self.register(make_node_key(key))
            write_private(_number_file(key), number.encode())
        self.spawn(
            f"node-{client}",
            *("flower-supernode", "--superlink", self.address),
            *("--root-certificates", str(self.certificates / "ca.crt")),
            *("--auth-supernode-private-key", str(key)),
            *("--host", HOST, "--port", str(free_port())),
            *("--node-config", f"partition-id={client} num-partitions={self.num_nodes}"),
        )

    def register(self, public_key: Path) -> str:
        """Register a key: whoever holds the matching private one may take part. Returns Flower's number of the node."""
        return str(
            json.loads(self.flwr("supernode", "register", str(public_key), CONNECTION, "--format", "json"))["node-id"]
        )

    def _replace_keys_in_use(self) -> None:
        """Take the keys of nodes that Flower believes to be there still; they get new ones when they are started.

        A node that was killed is online to the SuperLink for up to a minute, and its key is refused so long.
        """
        listed = json.loads(self.flwr("supernode", "list", CONNECTION, "--format", "json"))["nodes"]
        online = {node["node-id"] for node in listed if node["status"] == "online"}
        for key in [file.with_suffix("") for file in (self.folder / "keys").glob("node-*.pub")]:
            number = _number_file(key).read_text() if _number_file(key).exists() else ""
            if number in online:
                self.flwr("supernode", "unregister", number, CONNECTION)
            if not number or number in online:  # an older version did not keep numbers
                key.unlink(missing_ok=True)

    def flwr(self, *arguments: str) -> str:
        """Run a `flwr` command against this SuperLink. Returns what it printed."""
        done = subprocess.run(
            ["flwr", *arguments],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            umask=PRIVATE_UMASK,
        )
        if done.returncode:
            raise ConfigError(f"flwr {' '.join(arguments)} failed: {(done.stdout + done.stderr).strip()}")
        return done.stdout

    def end(self, name: str) -> None:
        """Send the process SIGTERM, and after a few seconds SIGKILL, with all of its group.

        The number of one that ended by itself may be another program's by now, and that of a group of its own: nothing
        is sent there unless what it has left running is still in it.
        """
        process = self.processes.pop(name)
        ours = process.poll() is None or self._started.has_group(process.pid)
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        if ours:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._started.remove(name)

    # ---- processes -------------------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """Environment variables: Flower's programs find each other on the PATH, and keep files in this folder."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        return {**os.environ, **ENVIRONMENT, "PATH": path, "FLWR_HOME": str(self.home)}

    def spawn(self, name: str, *command: str) -> None:
        """Start a process in a group of its own, writing to `logs/NAME.log`."""
        with os.fdopen(open_private_log(self.folder / "logs" / f"{name}.log"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                [*_bound_to_this_process(), *command],
                cwd=self.folder,
                env={**self.environment(), MARK: self._started.mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=PRIVATE_UMASK,
            )
        self._started.add(name, self.processes[name].pid)

    def ended(self) -> list[str]:
        """The names of processes that ended by themselves."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def _wait_for_superlink(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            log = self.folder / "logs" / "superlink.log"
            if self.ended():
                raise ConfigError(f"The SuperLink did not start: {log.read_text()[-800:].strip()}")
            if time.monotonic() > deadline:
                raise ConfigError(f"The SuperLink does not answer at {self.address}; see {log}.")
            time.sleep(0.2)

    def _answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.certificates / "ca.crt"))
        try:
            with (
                socket.create_connection((HOST, self.port), timeout=2) as plain,
                context.wrap_socket(plain, server_hostname=HOST),
            ):
                return True
        except OSError:
            return False


def _bound_to_this_process() -> list[str]:
    """The beginning of a command whose process ends with this one; nothing where the operating system cannot do it."""
    if not sys.platform.startswith("linux"):
        return []
    return [sys.executable, "-I", "-S", start_bound.__file__, str(os.getpid())]


def _number_file(key: Path) -> Path:
    """Where Flower's number of the node with this key is kept."""
    return key.with_suffix(".number")


def free_port() -> int:
    """A port of this machine on which nothing listens at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
