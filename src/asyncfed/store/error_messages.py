"""What errors of SQLite and of decoders mean for the run in hand, in words."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile

from asyncfed.core.errors import AsyncFedError, JournalError

UNREADABLE = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, EOFError, OSError, NotImplementedError),
    *(RecursionError, MemoryError, BadZipFile),
)
"""What decoders raise about bytes that are not what they should be."""

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the system's errors about room on a disk."""


@contextmanager
def explain_errors(path: Path | None) -> Iterator[None]:
    """Say in words what SQLite's errors mean for the run in hand."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise JournalError(another_writer(path, str(error))) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged schema is quoted in an error that is no text
        raise JournalError(_meaning(str(error), path)) from error


@contextmanager
def explain_damage(path: Path | None, part: str) -> Iterator[None]:
    """Say which part of a file cannot be decoded, whichever decoder failed."""
    try:
        yield
    except AsyncFedError:  # it says what is wrong already
        raise
    except UNREADABLE as error:
        raise JournalError(
            f"{path} is damaged: a {part} in it cannot be read ({error}). Restore the file from a copy, or run the "
            "experiment anew with another --out."
        ) from error


def another_writer(path: Path | None, what: str) -> str:
    """That two processes write to one file, found by `what`."""
    return (
        f"{path} was changed by someone else while this run was writing to it ({what}). Two processes must not write "
        f"to one run; stop the other one, then `asyncfed resume {path}`. Nothing was written."
    )


def being_written(path: Path, holder: str) -> str:
    """That a run may not be written because `holder` is writing it."""
    return (
        f"{path} is being written by {holder}. Nothing was changed. `asyncfed show {path}` reads it meanwhile. Wait "
        f"until that is over, or stop it; then `asyncfed resume {path}`."
    )


def cannot_write(path: Path, error: OSError) -> str:
    """Why the lock file of a run cannot be made or locked."""
    if error.errno in DISK_FULL:
        return f"The disk that holds {path} is full. Nothing was changed; make room, then try again."
    if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
        return (
            f"{path} is on a file system that cannot lock files ({error.strerror}), so that two processes could write "
            "to one run. Write it to a local disk: choose another --out, or copy it there with all files beside it."
        )
    return f"{path} cannot be written ({error.strerror}). Check the folder's permissions or choose another --out."


def _meaning(message: str, path: Path | None) -> str:
    if "full" in message and (path is None or path.exists()):
        return (
            f"The disk that holds {path} is full. Everything up to the last checkpoint is safe; "
            f"make room, then `asyncfed resume {path}`."
        )
    if "full" in message:
        return f"The disk that is to hold {path} is full. Nothing was written; make room, then try again."
    if "unable to open" in message or "readonly" in message:
        return f"{path} cannot be written ({message}). Check the folder's permissions or choose another --out."
    if "locked" in message:
        return f"{path} is being written by another process ({message}). Wait for it, or stop it."
    if "disk I/O" in message:
        return (
            f"The disk that holds {path} failed or has reached a limit ({message}). Everything up to the last "
            f"checkpoint is safe; mend it, then `asyncfed resume {path}`."
        )
    if any(sign in message for sign in ("not a database", "malformed", "no such", "decode")):
        return f"{path} is damaged or not an AsyncFed run ({message}). It is left untouched; restore it from a copy."
    return f"{path}: SQLite says: {message}."
