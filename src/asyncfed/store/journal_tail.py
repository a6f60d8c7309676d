"""Following a run's file while another process writes it: what is new since the last time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from asyncfed.core.errors import JournalError
from asyncfed.store.error_messages import explain_damage, explain_errors
from asyncfed.store.header import read_header
from asyncfed.store.schema import APPLICATION_ID, EVALUATION_COLUMNS, READABLE_VERSIONS, ROUND_COLUMNS

Row = tuple[Any, ...]

MOST_BLOCKS = 512
"""Blocks of events read at a time: a reader that holds its transaction for long would let the write-ahead log grow."""


LONGEST_WAIT = 0.5
"""Seconds to wait for a writer; a run without a write-ahead log is locked for a moment at each of its commits."""


class NewRows(NamedTuple):
    """What was committed since the last read.

    `restarted`: the file is another one, or was continued from a checkpoint before what had been read; then these are
    its first rows, and what was read before is void. `more`: there is more to read at once. `events` are packed: blocks
    of the file, joined.
    """

    restarted: bool
    more: bool
    header: dict[str, Any]
    num_events: int
    events: bytes
    details: list[tuple[int, str]]
    rounds: list[Row]
    evaluations: list[Row]


def open_read_only(path: Path) -> sqlite3.Connection:
    """A run's file, of which nothing is changed, made or deleted, whoever else has it open.

    A connection that may write would, as the last one, move the log of a killed run into its file. Where there is no
    log nobody writes, and SQLite need not make the two files with which readers and writers coordinate.

    Raises:
        JournalError: there is no file, or it is no run that can be read.
    """
    try:
        if not path.is_file():
            raise JournalError(f"There is no run at {path} any more.")
        log = path.with_name(path.name + "-wal")
        is_closed = not (log.exists() and log.stat().st_size)
    except (OSError, ValueError) as error:
        raise JournalError(f"{str(path)[:200]} cannot be looked at ({error!s:.80}).") from error
    mode = "immutable=1" if is_closed and not path.with_name(path.name + "-journal").exists() else "mode=ro"
    with explain_errors(path):
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?{mode}", uri=True, isolation_level=None, timeout=LONGEST_WAIT
        )
        try:
            _check_is_run(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _check_is_run(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise JournalError(f"{path} is not an AsyncFed run.")
    if version not in READABLE_VERSIONS:
        raise JournalError(
            f"{path} was written with schema version {version}; this AsyncFed reads versions {READABLE_VERSIONS[0]} to "
            f"{READABLE_VERSIONS[-1]}. Use the AsyncFed that wrote it."
        )


class JournalTail:
    """Reads what a run's file gained. It takes no lock and writes nothing; each `read` opens and closes the file.

    Args:
        path: the run's file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schema_version = 0
        self._forget()

    def _forget(self) -> None:
        self._last_block: tuple[int, int] | None = None  # its first event, and how many it has
        self._next_seq = self._last_detail = self._last_round = 0
        self._last_updates = -1
        self._file: tuple[int, int] | None = None

    def read(self) -> NewRows:
        """What is new.

        Raises:
            JournalError: there is no run at that place any more, or it is damaged.
        """
        with explain_errors(self.path), closing(open_read_only(self.path)) as connection:
            connection.execute("BEGIN")
            restarted = self._is_another(connection)
            if restarted:
                self._forget()
            stat = self.path.stat()
            self._file = (stat.st_dev, stat.st_ino)
            header = read_header(self.path, connection.execute("SELECT name, value FROM header").fetchall())
            (self.schema_version,) = connection.execute("PRAGMA user_version").fetchone()
            events, more = self._read_events(connection)
            # The texts are read with them: an event refers to a text that was committed with it, or before.
            rows = self._read_tables(connection)
            connection.execute("COMMIT")
        return NewRows(restarted, more, header, *events, *rows)

    def _is_another(self, connection: sqlite3.Connection) -> bool:
        """Whether what was read before is not what the file holds now."""
        if self._file is None:
            return False
        try:
            stat = self.path.stat()
        except OSError as error:
            raise JournalError(f"There is no run at {self.path} any more ({error.strerror}).") from error
        if (stat.st_dev, stat.st_ino) != self._file:
            return True
        if self._last_block is None:
            return False
        first, count = self._last_block
        found = connection.execute("SELECT count FROM events WHERE first_seq = ?", (first,)).fetchone()
        return found is None or found[0] != count

    def _read_events(self, connection: sqlite3.Connection) -> tuple[tuple[int, bytes], bool]:
        query = "SELECT first_seq, count, rows FROM events WHERE first_seq >= ? ORDER BY first_seq LIMIT ?"
        blocks = connection.execute(query, (self._next_seq, MOST_BLOCKS)).fetchall()
        with explain_damage(self.path, "block of events"):
            if blocks:
                first, count, _ = blocks[-1]
                self._last_block, self._next_seq = (first, count), first + count
            counted = sum(count for _, count, _ in blocks)
            return (counted, b"".join(rows for *_, rows in blocks)), len(blocks) == MOST_BLOCKS

    def _read_tables(self, connection: sqlite3.Connection) -> tuple[list[tuple[int, str]], list[Row], list[Row]]:
        details = connection.execute(
            "SELECT id, text FROM details WHERE id > ? ORDER BY id", (self._last_detail - 1,)
        ).fetchall()
        if details:
            self._last_detail = details[-1][0] + 1
        columns = ", ".join(name for name in ROUND_COLUMNS if name != "skipped")  # which older files lack
        rounds = connection.execute(
            f"SELECT {columns} FROM rounds WHERE round > ? ORDER BY round", (self._last_round,)
        ).fetchall()
        if rounds:
            self._last_round = rounds[-1][0]
        evaluations = connection.execute(
            f"SELECT {', '.join(EVALUATION_COLUMNS)} FROM evaluations WHERE updates > ? ORDER BY updates",
            (self._last_updates,),
        ).fetchall()
        if evaluations:
            self._last_updates = evaluations[-1][0]
        return details, rounds, evaluations
