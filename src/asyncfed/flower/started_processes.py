"""What a federation has started, in a file: so that the next one can end what a killed one left.

A process is recorded with the moment it began, because its number may be another's by now. Those that Flower starts in
turn are found by a mark in their environment, which they inherit (on Linux, where environments can be read).
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from asyncfed.core.record import Record, ValidationError, from_plain, to_json

MARK = "ASYNCFED_FEDERATION"
"""The environment variable that all processes of a federation have in common; a new value each time it is started."""

STOP_SECONDS = 5.0
"""How long a process may take to end after SIGTERM, before it gets SIGKILL."""

_PROC = Path("/proc")


class StartedProcess(Record):
    """A process: its name in the federation, its number, and when it began, as the operating system says."""

    name: str
    pid: int
    began: str


class _Recorded(Record):
    mark: str
    processes: tuple[StartedProcess, ...]


class StartedProcesses:
    """The records of one federation, in `file`, which is there as long as something may be running."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.mark = secrets.token_hex(16)
        self._known: dict[str, StartedProcess] = {}

    def add(self, name: str, pid: int) -> None:
        """Record a process that has just been started."""
        self._known[name] = StartedProcess(name, pid, began(pid) or "")
        self.write()

    def remove(self, name: str) -> None:
        """Forget a process that has ended."""
        self._known.pop(name, None)
        self.write()

    def write(self) -> None:
        """Write the file; before the first process is started, so that even that one can be found by its mark."""
        text = to_json(_Recorded(self.mark, tuple(self._known.values())))
        new = self.file.with_name(self.file.name + ".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        new.replace(self.file)

    def has_group(self, group: int) -> bool:
        """Whether a process of this federation is in this process group (on Linux, as above)."""
        return any(_group(one.pid) == group for one in _find_marked(self.mark))

    def clear(self) -> None:
        """End what is still there of this federation, and remove the file."""
        _end(_Recorded(self.mark, tuple(self._known.values())))
        self._known.clear()
        self.file.unlink(missing_ok=True)


def end_leftovers(file: Path) -> list[str] | None:
    """End what a killed federation has left running. Returns what it was, or None if it had ended by itself."""
    try:
        recorded = from_plain(json.loads(file.read_text()), _Recorded)
    except FileNotFoundError:
        return None
    except (ValidationError, json.JSONDecodeError):
        return []  # damaged: there was something, and nobody knows what
    return _end(recorded)


def _end(recorded: _Recorded) -> list[str]:
    """End these processes, and those that have the mark: SIGTERM, and SIGKILL after a few seconds."""
    found = _find(recorded)
    if not found:
        return []
    _signal(found, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while (left := _find(recorded)) and time.monotonic() < deadline:
        time.sleep(0.1)
    _signal(left, signal.SIGKILL)
    while _find(recorded) and time.monotonic() < deadline + STOP_SECONDS:
        time.sleep(0.1)  # a killed process is there until its parent, or init, has taken note
    return [f"{process.name} ({process.pid})" for process in found]


def began(pid: int) -> str | None:
    """When the process began, in the operating system's own words; None if there is none, or it is a zombie."""
    if not _PROC.exists():  # not on Linux
        shown = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return shown.stdout.strip() or None
    try:
        after_name = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return None if after_name[0] == "Z" else f"{boot} {after_name[19]}"  # the 22nd field: clock ticks since the boot


def _find(recorded: _Recorded) -> list[StartedProcess]:
    """Recorded processes that are still the same, and those with the mark."""
    alive = {one.pid: one for one in recorded.processes if one.began and began(one.pid) == one.began}
    return [*alive.values(), *(one for one in _find_marked(recorded.mark) if one.pid not in alive)]


def _find_marked(mark: str) -> list[StartedProcess]:
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                pid, name = int(entry.name), (entry / "comm").read_text().strip()
                moment = began(pid)
                if moment is not None and pid != os.getpid():
                    found.append(StartedProcess(name, pid, moment))
    return found


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _signal(processes: list[StartedProcess], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            if began(process.pid) == process.began:
                os.kill(process.pid, number)
