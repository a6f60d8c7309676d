"""The journal: everything that happened in a run, in order, in one SQLite file.

Rows are collected in memory and written together with a checkpoint in one transaction, so a file always ends at a
moment from which the run can go on: whatever kills the process, the file holds a complete prefix of the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import nan
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from asyncfed.core.errors import JournalError
from asyncfed.core.record import from_plain, pack_rows, unpack_rows
from asyncfed.store.array_file import ArrayFile
from asyncfed.store.array_store import MESSAGE, PAYLOAD, READ_ATTEMPTS, ArrayStore, Dump
from asyncfed.store.checkpoint_rows import CheckpointRow, pack_checkpoint, unpack_checkpoint
from asyncfed.store.error_messages import another_writer, explain_damage, explain_errors
from asyncfed.store.events import Event, StoredEvent
from asyncfed.store.files import WritableFile, create_file, open_to_continue, open_to_read, write_first_rows
from asyncfed.store.header import read_header
from asyncfed.store.lost_payloads import cut_before
from asyncfed.store.packed_arrays import pack_arrays, unpack_arrays
from asyncfed.store.process_lock import ProcessLock
from asyncfed.store.schema import (
    ADDED_COLUMNS,
    EVALUATION_COLUMNS,
    KIND_NAMES,
    ROUND_COLUMNS,
)

Row = tuple[Any, ...]

NUMBERS = {"rounds": ROUND_COLUMNS, "evaluations": tuple(name for name in EVALUATION_COLUMNS if name != "metrics")}
"""Columns of numbers by table; the others are texts and bytes, which are checked where they are decoded."""


class Journal:
    """Use `Journal.create` for a new run and `Journal.open` for an existing one.

    `events`, `rounds` and `evaluations` hold rows that wait for the next `commit`. So does `payloads`: what clients of
    a live run sent, by ticket. It cannot be computed again, so the file keeps it until a checkpoint holds its effect;
    `payload_sums` are the check sums of those for which they are known.
    `released` are messages to which their client itself added noise, by ticket: no training gives them again, and the
    file keeps them for good.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path | None, lock: ProcessLock | None = None) -> None:
        self.path = path
        self._lock = lock
        self._file = None if path is None or lock is None else path.stat()
        self.events: list[Row] = []
        self.rounds: list[Row] = []
        self.evaluations: list[Row] = []
        self.payloads: list[tuple[int, np.ndarray]] = []
        self.payload_sums: dict[int, int] = {}
        self.released: list[tuple[int, dict[str, np.ndarray]]] = []
        self.messages: list[tuple[int, dict[str, np.ndarray]]] = []
        self.next_seq = 0
        self._packed, self._packed_count = bytearray(), 0  # events that wait, packed already
        self._connection = connection
        self._arrays = ArrayStore(connection, path)
        self._power_safe = False
        self._erases = False
        self._detail_ids: dict[str, int] = {}
        self._new_details: list[tuple[int, str]] = []
        self._event_digest = hashlib.sha256()
        self._detail_digest = hashlib.sha256()

    # ---- making and opening ----------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path | str | None, header: dict[str, Any], *, replace: bool = False) -> Journal:
        """A new journal at `path` (in memory if None). An existing run is only replaced with `replace`."""
        if path is None:
            connection = sqlite3.connect(":memory:", isolation_level=None)
            write_first_rows(connection, header)
            return cls(connection, None)
        return cls._write_to(Path(path), create_file(Path(path), header, replace))

    @classmethod
    def open(cls, path: Path | str, *, write: bool = False) -> Journal:
        """An existing journal, to read or (`write`) to continue at its end.

        Whoever writes has the file's lock until `finish_writing` or `close`; readers need none.
        """
        file = Path(path)
        journal = cls._write_to(file, open_to_continue(file)) if write else cls(open_to_read(file), file)
        journal._load_details()
        return journal

    @classmethod
    def _write_to(cls, file: Path, writable: WritableFile) -> Journal:
        return cls(writable.connection, file, writable.lock)

    def survive_power_loss(self) -> None:
        """From now on a commit waits for the disk. Without this it survives the death of the process, not of power."""
        self._connection.execute("PRAGMA synchronous = FULL")
        self._power_safe = True

    def erase_what_is_deleted(self) -> None:
        """From now on a commit leaves no bytes of what it deletes in the run's files, at the cost of its speed.

        Deleted rows are overwritten, and the file is changed in place: SQLite's rollback journal, which holds what was
        there before, is emptied by the very act that completes the commit. A write-ahead log would hold it for longer.
        """
        self._arrays.stay_in_tables()
        self._erases = True
        with explain_errors(self.path):
            self._connection.execute("PRAGMA secure_delete = ON")
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("PRAGMA busy_timeout = 60000")  # readers now hold a writer up, and are waited for
            (mode,) = self._connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
        if mode not in ("truncate", "memory"):
            raise JournalError(
                f"{self.path} cannot be written in place, and would keep what is to be erased: its journal mode stays "
                f"{mode}. Close all other programs that read it."
            )

    @property
    def sent_memory(self) -> ArrayFile | None:
        """Memory for payloads that is part of a file already (a source of memory); None if they lie in tables."""
        return self._arrays.sent_memory

    def finish_writing(self) -> None:
        """Let others write to the file. This journal can still be read."""
        if self._lock is not None and self._lock.held:
            if self._erases:
                with suppress(sqlite3.Error):  # it is empty: who cannot delete it now need not
                    self._connection.execute("PRAGMA journal_mode = DELETE")
            self._lock.release()

    def close(self) -> None:
        """Close the file. What waits for a commit is lost."""
        self.finish_writing()
        self._arrays.close()
        self._connection.close()

    # ---- writing ---------------------------------------------------------------------------------------------

    def intern(self, text: str) -> int:
        """The number under which this text is stored; the same text always gets the same number."""
        number = self._detail_ids.get(text)
        if number is None:
            number = len(self._detail_ids)
            self._detail_ids[text] = number
            self._new_details.append((number, text))
        return number

    @property
    def waiting(self) -> int:
        """How many events wait for the next commit."""
        return self._packed_count + len(self.events)

    def append_packed(self, count: int, rows: bytes | memoryview) -> None:
        """Add so many events, from `next_seq` on, as `pack_rows` would pack them."""
        self._pack_events()
        self._packed += rows
        self._packed_count += count
        self.next_seq += count

    def _pack_events(self) -> None:
        self._packed += pack_rows(self.events)
        self._packed_count += len(self.events)
        self.events = []

    def commit(
        self, state: dict[str, Any] | None, arrays: Dump | None, *, in_one_file: bool = False, **header: Any
    ) -> None:
        """Write all waiting rows, a checkpoint if given, and header values, in one transaction.

        With `in_one_file` the checkpoint leaves nothing in the files of large arrays beside the run's own.
        """
        self._check_in_place()
        self._pack_events()
        packed, count = bytes(self._packed), self._packed_count
        checkpoint = None if state is None or arrays is None else pack_checkpoint(state, arrays)
        frees_places = checkpoint is not None and self._arrays.touches_files(checkpoint.large)
        with explain_errors(self.path):
            if frees_places:  # they are used again: the disk must not go back to what was there before
                self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_end(count)
                self._insert(packed, count, checkpoint, header, in_one_file)
                if frees_places or self._power_safe:
                    self._arrays.sync(sent=self._power_safe)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                self._arrays.rolled_back()
                raise
            if frees_places and not self._power_safe:
                self._connection.execute("PRAGMA synchronous = NORMAL")
        self._arrays.committed()
        self._digest(packed, self._new_details)
        self._packed, self._packed_count = bytearray(), 0
        self.rounds, self.evaluations, self._new_details = [], [], []
        self.payloads, self.messages, self.released, self.payload_sums = [], [], [], {}

    def _check_in_place(self) -> None:
        """Refuse to go on when what is written would be found by nobody, or by two."""
        if self.path is None:
            return
        if self._file is None or self._lock is None or not self._lock.held:
            raise JournalError(f"{self.path} was opened to be read, or its writing was finished. Nothing was written.")
        try:
            same = os.path.samestat(self.path.stat(), self._file)
        except OSError:
            same = False
        if not same:
            raise JournalError(
                f"{self.path} was moved, deleted or replaced while this run was writing to it, and the run was "
                "stopped. If you moved it, move it back with all files beside it, and `asyncfed resume` it; if it is "
                "gone, run the experiment anew."
            )

    def _check_end(self, count: int) -> None:
        """Refuse to write behind somebody else's events: two writers would leave a journal of neither run."""
        last = "SELECT first_seq + count FROM events ORDER BY first_seq DESC LIMIT 1"
        (end,) = self._connection.execute(last).fetchone() or (0,)
        expected = self.next_seq - count
        if end != expected:
            raise JournalError(another_writer(self.path, f"its events end at {end}, not at {expected}"))

    def _insert(
        self, packed: bytes, count: int, checkpoint: CheckpointRow | None, header: dict[str, Any], in_one_file: bool
    ) -> None:
        write = self._connection.executemany
        write("INSERT INTO details VALUES (?, ?)", self._new_details)
        if count:
            write("INSERT INTO events VALUES (?, ?, ?)", [(self.next_seq - count, count, packed)])
        write(f"INSERT OR REPLACE INTO rounds VALUES ({_marks(ROUND_COLUMNS)})", self.rounds)
        write(f"INSERT OR REPLACE INTO evaluations VALUES ({_marks(EVALUATION_COLUMNS)})", self.evaluations)
        write("INSERT OR REPLACE INTO header VALUES (?, ?)", [(k, json.dumps(v)) for k, v in header.items()])
        packed_messages = [(ticket, pack_arrays(message)) for ticket, message in self.released]
        rows = [(t, crc32(m), m) for t, m in packed_messages if not self._arrays.keep_released(t, m)]
        write("INSERT INTO released VALUES (?, ?, ?)", rows)
        if checkpoint is None:
            keep, sums = self._arrays.keep_sent, self.payload_sums
            small = [(t, sent) for t, sent in self.payloads if not keep(t, PAYLOAD, sent, sums.get(t))]
            write("INSERT INTO payloads VALUES (?, ?, ?)", [(t, crc32(p.data), p.data) for t, p in small])
            packed_messages = [(ticket, pack_arrays(message)) for ticket, message in self.messages]
            rows = [
                (ticket, crc32(m), m)
                for ticket, m in packed_messages
                if not self._arrays.keep_sent(ticket, MESSAGE, np.frombuffer(m, np.uint8))
            ]
            write("INSERT INTO messages VALUES (?, ?, ?)", rows)
        else:
            self._connection.execute("DELETE FROM payloads")
            self._connection.execute("DELETE FROM messages")
            self._arrays.store(checkpoint.large, in_tables=in_one_file)
            self._connection.execute("DELETE FROM checkpoints")
            row = (self.next_seq, *checkpoint[:3])
            self._connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?)", row)

    def _digest(self, packed_events: bytes, details: list[tuple[int, str]]) -> None:
        self._event_digest.update(packed_events)
        self._detail_digest.update(pack_rows(details))

    # ---- reading ---------------------------------------------------------------------------------------------

    def sha256(self) -> str:
        """The digest of all committed events. Evaluations, checkpoints and commit times do not enter it."""
        return hashlib.sha256(self._event_digest.digest() + self._detail_digest.digest()).hexdigest()

    def header(self) -> dict[str, Any]:
        """What the file says about itself."""
        return read_header(self.path, self._query("SELECT name, value FROM header"))

    def event_rows(self, since: int = 0) -> Iterator[Event]:
        """Committed events in order, with the text of their detail in place of its number.

        `since` is the number of the first one wanted: 0, or where a checkpoint was written.
        """
        texts: dict[int | None, str | None] = {}
        for count, block in self._blocks(since):
            if not texts:  # read once the blocks are being read: then both are of the same moment
                texts = {None: None, **dict(self._read_details())}
            with explain_damage(self.path, "block of events"):
                events = [Event._make((*row[:-1], texts[row[-1]])) for row in unpack_rows(block, count, StoredEvent)]
            yield from events

    def event_columns(self) -> dict[str, list[Any]]:
        """All committed events by column, the kind by its name."""
        rows = list(self.event_rows())
        with explain_damage(self.path, "event"):
            table: dict[str, list[Any]] = {name: [row[i] for row in rows] for i, name in enumerate(Event._fields)}
            table["kind"] = [KIND_NAMES[kind] for kind in table["kind"]]
        return table

    def _blocks(self, since: int = 0) -> Iterator[tuple[int, bytes]]:
        query = "SELECT count, rows FROM events WHERE first_seq >= ? ORDER BY first_seq"
        with explain_errors(self.path):
            for count, block in self._connection.execute(query, (since,)):
                # An event takes more than a byte: a larger count would only reserve memory.
                if not (isinstance(block, bytes) and isinstance(count, int) and 0 <= count <= len(block)):
                    raise JournalError(
                        f"{self.path} is damaged: a block of its events is said to hold {count!r}. Restore the file "
                        "from a copy."
                    )
                yield count, block

    def columns(self, table: str) -> dict[str, list[Any]]:
        """A whole table by column. Columns of numbers hold nothing else."""
        with explain_errors(self.path):
            cursor = self._connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        for added in ADDED_COLUMNS.get(table, ()):  # a file of an earlier version may lack it
            columns.setdefault(added.split()[0], [0] * len(rows))
        for name in NUMBERS.get(table, ()):
            for value in columns.get(name, [None]):
                if not isinstance(value, int | float):
                    raise JournalError(
                        f"{self.path} is damaged: {name} in its table of {table} is {value!r:.60}, which is no number. "
                        "Restore the file from a copy."
                    )
        return columns

    def last_measurement(self, updates: int) -> dict[str, float]:
        """The metrics of the last evaluation of a model of at most so many updates; empty if there is none."""
        query = "SELECT metrics FROM evaluations WHERE updates <= ? ORDER BY updates DESC LIMIT 1"
        with explain_errors(self.path), explain_damage(self.path, "evaluation"):
            for (text,) in self._connection.execute(query, (updates,)):
                return _read_metrics(text)
        return {}

    def evaluation_columns(self) -> dict[str, list[Any]]:
        """Evaluations by column, one column a metric; a metric that was not measured is NaN."""
        table = self.columns("evaluations")
        with explain_damage(self.path, "evaluation"):
            metrics = [_read_metrics(text) for text in table.pop("metrics")]
        for name in dict.fromkeys(name for row in metrics for name in row):
            table[name] = [row.get(name, nan) for row in metrics]
        return table

    def checkpoint(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """The last checkpoint, or None if the run never got that far. No pickles are ever read.

        An array that was given by its rows, if they are large, comes back as a list of them.
        """
        for attempt in range(READ_ATTEMPTS):
            try:
                with explain_errors(self.path), explain_damage(self.path, "checkpoint"), self._one_moment():
                    rows = self._query(
                        "SELECT seq, state, state_crc, arrays FROM checkpoints ORDER BY seq DESC LIMIT 1"
                    )
                    return unpack_checkpoint(rows[0], self._arrays.load()) if rows else None
            except JournalError:  # the writer may have used the places of large arrays again meanwhile
                if attempt == READ_ATTEMPTS - 1 or self._connection.in_transaction:
                    raise
        return None

    def forget_incomplete(self, since: int, now: float) -> None:
        """End the journal before the first commit after a checkpoint of which the disk has not everything."""
        with explain_errors(self.path), explain_damage(self.path, "payload"):
            unreadable = self._arrays.unreadable_tickets()
            if unreadable:
                cut_before(self._connection, since, now, unreadable)
        if unreadable:
            self._load_details()

    def rewind(self, seq: int) -> None:
        """Forget events from `seq` on and take up writing there; the digest is computed anew from what stays."""
        with explain_errors(self.path):
            self._connection.execute("DELETE FROM events WHERE first_seq >= ?", (seq,))
        self.next_seq = seq
        self.rehash()

    def payload(self, ticket: int, dtype: np.dtype[Any]) -> np.ndarray:
        """What the client sent with this ticket, reported since the last checkpoint."""
        with explain_errors(self.path), explain_damage(self.path, "payload"):
            large = self._arrays.sent(ticket, PAYLOAD)
        if large is not None:
            return large
        stored = self._sent_with("payloads", ticket)
        if stored is None:
            raise JournalError(
                f"{self.path} is damaged: what the client sent with ticket {ticket} is missing. Restore the file from "
                "a copy."
            )
        with explain_damage(self.path, "payload"):
            return np.frombuffer(stored, dtype)

    def released_message(self, ticket: int) -> dict[str, np.ndarray] | None:
        """The message with noise of the client's own that came with this ticket; None if there was none."""
        with explain_errors(self.path), explain_damage(self.path, "released message"):
            large = self._arrays.released(ticket)
            if large is not None:
                return unpack_arrays(large.tobytes())
        stored = self._sent_with("released", ticket)
        if stored is None:
            return None
        with explain_damage(self.path, "released message"):
            return unpack_arrays(stored)

    def message(self, ticket: int) -> dict[str, np.ndarray] | None:
        """The message that came with this ticket since the last checkpoint; None if a model did. Empty: skipped."""
        with explain_errors(self.path), explain_damage(self.path, "message"):
            large = self._arrays.sent(ticket, MESSAGE)
            if large is not None:
                return unpack_arrays(large.tobytes())
        stored = self._sent_with("messages", ticket)
        if stored is None:
            return None
        with explain_damage(self.path, "message"):
            return unpack_arrays(stored)

    def _sent_with(self, table: str, ticket: int) -> bytes | None:
        with explain_errors(self.path):
            row = self._connection.execute(f"SELECT crc, bytes FROM {table} WHERE ticket = ?", (ticket,)).fetchone()
        if row is not None and crc32(row[1]) != row[0]:
            raise JournalError(
                f"{self.path} is damaged: what the client sent with ticket {ticket} is not what it was. Restore the "
                "file from a copy."
            )
        return None if row is None else bytes(row[1])

    def go_back(self, seq: int) -> None:
        """Prepare for making the events from `seq` on once more; they stay in the file. Then `confirm` them."""
        self.next_seq = seq
        self.rehash()

    def confirm(self, since: int) -> None:
        """The events that wait are those which the file already holds from `since` on; else refuse to go on."""
        if pack_rows(self.events) != b"".join(block for _, block in self._blocks(since)) or self._new_details:
            raise JournalError(
                f"{self.path}: what it says happened after event {since} does not follow from what came before. It was "
                "changed, or written by another version of AsyncFed; use that one, or restore the file from a copy."
            )
        self.events = []

    def rehash(self) -> None:
        """Compute the digest from the file itself instead of trusting what was computed while writing."""
        self._event_digest, self._detail_digest = hashlib.sha256(), hashlib.sha256()
        with explain_errors(self.path), self._one_moment():
            for _, block in self._blocks():
                self._digest(block, [])
            self._digest(b"", self._query("SELECT id, text FROM details ORDER BY id"))

    def _query(self, sql: str) -> list[Row]:
        with explain_errors(self.path):
            return self._connection.execute(sql).fetchall()

    @contextmanager
    def _one_moment(self) -> Iterator[None]:
        """All that is read in the block is of one moment, also while another process is writing."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:  # some errors have ended it
                self._connection.execute("COMMIT")

    def _load_details(self) -> None:
        self._detail_ids = {text: number for number, text in self._read_details()}

    def _read_details(self) -> list[tuple[int, str]]:
        rows = self._query("SELECT id, text FROM details")
        if not all(isinstance(text, str) for _, text in rows):
            raise JournalError(f"{self.path} is damaged: a detail of its events is no text. Restore it from a copy.")
        return [(number, text) for number, text in rows]


def _read_metrics(text: Any) -> dict[str, float]:
    """The metrics of an evaluation; NaN where a number was not finite."""
    metrics = from_plain(json.loads(text), dict[str, float | None])
    return {name: nan if value is None else value for name, value in metrics.items()}


def _marks(columns: tuple[str, ...]) -> str:
    return ", ".join("?" * len(columns))
