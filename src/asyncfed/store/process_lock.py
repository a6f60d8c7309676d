"""ProcessLock: a lock file that one process holds at a time, and that the operating system gives back when it dies.

Whether the file exists says nothing: a killed process leaves it behind, and the next one takes the lock all the same.
Its text says who holds the lock. It is `flock`, which NFS passes on to its server; a mount without locks refuses it.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

if sys.platform != "win32":
    import fcntl

MOST_BYTES = 1000
"""Bytes of the text that says who holds a lock."""

ATTEMPTS, PAUSE_SECONDS = 5, 0.02
"""Who only looks whether a lock is held has it for a moment."""

LONGEST_COMMAND = 200
"""Characters of a holder's command that are written down."""


class LockHeldError(Exception):
    """Another process, or another part of this one, has the lock; the text says who."""


class ProcessLock:
    """A lock that is held from when this is made until `release`, or until the process ends.

    A process that is forked from the holder does not hold it, and cannot keep it when the holder dies. Windows has no
    `flock`: there nothing is locked.

    Args:
        path: the lock file, made if it is not there and deleted with the release.

    Raises:
        LockHeldError: somebody has it.
        OSError: the file cannot be made, or the file system cannot lock.
    """

    _descriptor = -1

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = _lock(path)
        _held.add(self)
        with suppress(OSError):  # on a full disk nobody learns who it is; the lock is held all the same
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, _describe_this_process(), 0)

    @property
    def held(self) -> bool:
        """Whether this process still has it."""
        return self._descriptor >= 0

    def release(self) -> None:
        """Delete the file and let others have the lock."""
        if self._descriptor >= 0:
            with suppress(OSError):
                if _is_at(self._descriptor, self._path):  # else it was deleted, and the one there now is another's
                    self._path.unlink()
            self._close()

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def __del__(self) -> None:
        self.release()


def find_holder(path: Path) -> str | None:
    """Who holds the lock with this file; None if nobody does. Nothing is made or changed.

    Raises:
        OSError: there is such a file, but it cannot be looked at.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(descriptor) else _read_holder(descriptor)
    finally:
        os.close(descriptor)


def _lock(path: Path) -> int:
    """The descriptor of this file, locked."""
    attempts = ATTEMPTS
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            if _try_lock(descriptor):
                if _is_at(descriptor, path):
                    return descriptor  # else who held it has deleted it meanwhile: others would lock another file
            elif attempts := attempts - 1:
                time.sleep(PAUSE_SECONDS)
            else:
                raise LockHeldError(_read_holder(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _describe_this_process() -> bytes:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]) if sys.argv else ""
    known = {
        "pid": os.getpid(),
        "host": platform.node(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "command": command[:LONGEST_COMMAND],
    }
    return json.dumps(known).encode()


def _read_holder(descriptor: int) -> str:
    """In words, who wrote this file."""
    try:
        known = json.loads(os.read(descriptor, MOST_BYTES))
        return (
            f"process {known['pid']} on {known['host']} since {known['since']} ({known['command'] or 'an interpreter'})"
        )
    except (OSError, ValueError, LookupError, TypeError):
        return "another process"  # which has just begun, or whose disk is full


_held: WeakSet[ProcessLock] = WeakSet()


def _close_in_child() -> None:
    """A lock belongs to the open file, which a forked process shares: closed there, it ends with the holder."""
    for lock in list(_held):
        if lock.held:
            lock._close()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_close_in_child)
