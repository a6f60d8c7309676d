"""The folder in which a live server has its sockets. One that a killed server left is deleted by the next.

Python's fork server listens on a socket in a folder of the system's temporary one, which a process deletes when it
ends, but not when it is killed. Here that folder lies in one of ours, and beside it a lock that the server holds.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from functools import cache
from multiprocessing import util
from pathlib import Path

from asyncfed.store.process_lock import LockHeldError, ProcessLock

PREFIX, LOCK = "asyncfed-", ".lock"

SOCKET_BYTES, LONGEST_BYTES = 32, 103
"""Of the path of a socket: what Python adds to the folder, and what systems take at most."""

AFTER_SOCKETS = -200
"""When, at its end, a process deletes the folder: the fork server's own, inside of it, is deleted at -100."""


def claim_folder() -> None:
    """Have this process's sockets in a folder of its own, and delete those of servers that are gone. Once is enough."""
    _claim(os.getpid())


@cache
def _claim(process: int) -> None:
    """What is done once in a process: a forked one is another."""
    parent = Path(tempfile.gettempdir())
    delete_abandoned(parent)
    folder = parent / f"{PREFIX}{secrets.token_hex(4)}"
    if len(os.fsencode(folder)) + SOCKET_BYTES > LONGEST_BYTES:
        return  # where temporary files have long paths, there is no room for a folder of ours
    lock = ProcessLock(folder.with_name(folder.name + LOCK))  # first: so that no moment leaves a folder without one
    folder.mkdir(mode=0o700)
    util.Finalize(None, _delete, (folder, lock), exitpriority=AFTER_SOCKETS)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        util.get_temp_dir()  # remembered for as long as the process lives; one that was made before is kept
    finally:
        tempfile.tempdir = before


def delete_abandoned(parent: Path) -> None:
    """Delete the folders in `parent` that belong to this user, and to no process any more."""
    for path in parent.glob(f"{PREFIX}*{LOCK}"):
        try:
            if path.lstat().st_uid == os.geteuid():
                _delete(path.with_name(path.name.removesuffix(LOCK)), ProcessLock(path))
        except (OSError, LockHeldError):
            continue  # it is in use, or another has just deleted it


def _delete(folder: Path, lock: ProcessLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()
