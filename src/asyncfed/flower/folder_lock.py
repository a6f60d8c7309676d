"""FolderLock: a folder is used by one process at a time, and whoever finds it in use is told by whom."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from pathlib import Path

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record, ValidationError, from_plain, to_json


class Holder(Record):
    """Who holds the lock."""

    pid: int
    since: str
    command: str


class FolderLock:
    """A lock of the operating system on `file`: it is free again when its holder is gone, however that ended.

    Processes that the holder starts do not inherit it, so they cannot hold it in its place.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def take(self) -> None:
        """Take the lock and write down who holds it. Refused if another process does."""
        descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ConfigError(self._describe_holder()) from None
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
        os.ftruncate(descriptor, 0)
        os.write(descriptor, to_json(Holder(os.getpid(), time.strftime("%Y-%m-%d %H:%M:%S"), command)).encode())
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock up, if it is held. The file stays: to delete it would let two processes hold two locks."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _describe_holder(self) -> str:
        folder = self.file.parent
        try:
            holder = from_plain(json.loads(self.file.read_bytes()), Holder)
        except (ValidationError, json.JSONDecodeError):  # it took the lock this very moment
            return f"{folder} is being taken by another process. Name another folder, or try again."
        return (
            f"{folder} is in use by process {holder.pid} since {holder.since} ({holder.command}). "
            f"Name another folder, or end that process (Ctrl-C in its terminal, or `kill {holder.pid}`) and try again."
        )
