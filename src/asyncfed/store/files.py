"""Files of runs: made whole or not at all, opened to read or to continue, never confused with other databases."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from asyncfed.core.errors import JournalError
from asyncfed.store.error_messages import being_written, cannot_write, explain_errors
from asyncfed.store.process_lock import LockHeldError, ProcessLock, find_holder
from asyncfed.store.schema import ADDED_COLUMNS, APPLICATION_ID, READABLE_VERSIONS, SCHEMA_VERSION, TABLES

LARGEST_PAGE = 65536
"""Bytes: a SQLite database without tables is one page."""

LOCK = "-lock"
"""What the name of the lock file of a run that is being written ends in."""

BESIDE = ("-wal", "-shm", "-journal", "-arrays", "-sent")
"""What the names of the other files beside a run's own end in."""


class WritableFile(NamedTuple):
    """A run's file that this process alone may write, until the lock is released."""

    connection: sqlite3.Connection
    lock: ProcessLock


def create_file(file: Path, header: dict[str, Any], replace: bool) -> WritableFile:
    """A new file with this header and empty tables, ready to be written to.

    It is made under another name and then renamed, so that a process that is killed meanwhile leaves nothing under the
    name `file` that is not a run. What it leaves under other names is deleted by the next that writes to `file`.

    Args:
        file: where it is to be. Missing folders are made.
        header: what the run says about itself, by name.
        replace: whether a run that is there already is deleted.
    """
    check_free(file, replace)
    _make_folder(file.parent)
    new = _unfinished(file)
    with _locked(file) as lock, explain_errors(file):
        check_free(file, replace, lock)  # nobody else can make or continue it any more
        _delete(new)
        try:
            with closing(sqlite3.connect(new, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                write_first_rows(connection, header)
            if file.exists():
                _delete(file)
            _delete_beside(file)  # a run that has lost its file left it, and SQLite would take it for this one's
            _rename(new, file)
        finally:
            _delete(new)
        return WritableFile(_connect_for_writing(file), lock)


def write_first_rows(connection: sqlite3.Connection, header: dict[str, Any]) -> None:
    """Make the tables and write the header, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    for statement in TABLES.split(";\n"):
        connection.execute(statement)
    rows = [(name, json.dumps(value, sort_keys=True)) for name, value in header.items()]
    connection.executemany("INSERT INTO header VALUES (?, ?)", rows)
    connection.execute("COMMIT")


def open_to_read(file: Path) -> sqlite3.Connection:
    """An existing run's file, also one that is being written at the moment."""
    _check_exists(file)
    with explain_errors(file):
        connection = _connect_for_reading(file)
        _check_is_run(connection, file)
    return connection


def open_to_continue(file: Path) -> WritableFile:
    """An existing run's file, to be written at its end."""
    _check_exists(file)
    with _locked(file) as lock, explain_errors(file):
        _delete(_unfinished(file))
        connection = _connect_for_writing(file)
        try:
            _check_is_run(connection, file)
            _bring_up_to_date(connection)
        except BaseException:
            connection.close()
            raise
        return WritableFile(connection, lock)


def _check_exists(file: Path) -> None:
    try:
        exists = file.is_file()
    except (OSError, ValueError) as error:  # a name that is too long, or has a zero byte in it
        raise JournalError(f"There can be no run at {str(file)[:80]} ({error!s:.80}). Check the name.") from error
    if not exists:
        raise JournalError(f"There is no run at {file}. `asyncfed run --out {file}` makes one.")


@contextmanager
def _locked(file: Path) -> Iterator[ProcessLock]:
    """The lock of a run's file, which is released again if the block fails."""
    try:
        lock = ProcessLock(file.with_name(file.name + LOCK))
    except LockHeldError as holder:
        raise JournalError(being_written(file, str(holder))) from None
    except OSError as error:
        raise JournalError(cannot_write(file, error)) from error
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


def _connect_for_writing(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _connect_for_reading(file: Path) -> sqlite3.Connection:
    """A connection that can read, also where nothing may be written.

    Even to read, SQLite wants to make two files beside a run's own, which coordinate readers and writers. In a folder
    that cannot be written to, or on a full disk, nobody writes, so they are not needed, if none was left by a run that
    was killed.
    """
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        connection.execute("SELECT name FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if not any(sign in str(error) for sign in ("unable to open", "readonly", "full", "disk I/O")):
            raise
        waiting = file.with_name(file.name + "-wal")
        if waiting.exists() and waiting.stat().st_size:
            beside = [name for name in (file.name + ending for ending in BESIDE) if file.with_name(name).exists()]
            raise JournalError(
                f"{file} was not closed by its last writer, and its folder cannot be written to ({error}). Copy it and "
                f"{', '.join(beside)} to a folder of your own, and open it there."
            ) from error
        connection = sqlite3.connect(f"file:{quote(str(file.absolute()))}?immutable=1", uri=True, isolation_level=None)
    return connection


def check_free(file: Path, replace: bool, lock: ProcessLock | None = None) -> None:
    """Refuse to write where somebody's work is; a run may be replaced if `replace` says so.

    Without the file's `lock`, also refuse a run that is being written at the moment.
    """
    if not file.exists():
        return
    with explain_errors(file):
        if not file.is_file():
            raise JournalError(f"{file} is not a file, and nothing was overwritten. Choose another --out.")
        if lock is None:
            _check_unlocked(file)
        if not _is_empty(file):
            if not replace:
                raise JournalError(
                    f"{file} exists already, and nothing was overwritten. Continue it with `asyncfed resume "
                    f"{file}`, choose another --out, or replace it with --force."
                )
            with closing(sqlite3.connect(file)) as connection:
                _check_is_run(connection, file)  # never delete what is not a run


def find_writer(file: Path) -> str | None:
    """Who is writing this run at the moment, in words; None if nobody is, or it cannot be known."""
    with suppress(OSError):  # who cannot look at the lock will not get it either, and is then told why
        return find_holder(file.with_name(file.name + LOCK))
    return None


def _check_unlocked(file: Path) -> None:
    holder = find_writer(file)
    if holder is not None:
        raise JournalError(being_written(file, holder))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalError(f"The folder {folder} cannot be made ({error.strerror}). Choose another --out.") from error


def _is_empty(file: Path) -> bool:
    """Whether nothing is in the file: no byte, or a database without tables, as a killed process may leave it."""
    size = file.stat().st_size
    if not 0 < size <= LARGEST_PAGE:
        return size == 0
    try:
        with closing(sqlite3.connect(file)) as connection:
            return _has_nothing(connection)
    except sqlite3.DatabaseError:
        return False


def _has_nothing(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return bool(tables == 0 and application == 0)


def _check_is_run(connection: sqlite3.Connection, file: Path) -> None:
    if _has_nothing(connection):
        raise JournalError(
            f"{file} is empty: a run that was to be written there was stopped before it began, so there is nothing to "
            f"read or resume. Start it again with `asyncfed run --out {file}`."
        )
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise JournalError(f"{file} is a SQLite database, but not an AsyncFed run; it is left untouched.")
    if version not in READABLE_VERSIONS:
        raise JournalError(
            f"{file} was written with schema version {version}; this AsyncFed reads versions {READABLE_VERSIONS[0]} to "
            f"{READABLE_VERSIONS[-1]}. Use the AsyncFed that wrote it."
        )


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    """A file of an older version that is to be continued becomes one of this: with the tables and columns it lacks."""
    if connection.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    for statement in TABLES.split(";\n"):
        connection.execute(statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
    for table, columns in ADDED_COLUMNS.items():
        present = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for column in columns:
            if column.split()[0] not in present:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _unfinished(file: Path) -> Path:
    """The name under which a file is made. Only who has the file's lock uses it."""
    return file.with_name(f".{file.name}.new")


def _delete(file: Path) -> None:
    """Delete a run, its own file first: without it, what is left beside it is nothing."""
    file.unlink(missing_ok=True)
    _delete_beside(file)


def _delete_beside(file: Path) -> None:
    for ending in BESIDE:
        file.with_name(file.name + ending).unlink(missing_ok=True)


def _rename(new: Path, file: Path) -> None:
    """Give the file its name, unless another process has made one of that name meanwhile."""
    try:
        os.link(new, file)
    except FileExistsError as error:
        raise JournalError(
            f"{file} was made by another process meanwhile, and nothing was overwritten. Choose another --out."
        ) from error
    except OSError:  # a file system without links
        new.replace(file)
