"""Large arrays of a run: those of its checkpoint, and what clients sent since. Each distinct one is stored once.

A row of `arrays` says what an array is and where: at a `place` of a `file` beside the run's own (`array_file.py`), or
in rows of `chunks`, which are far below the length that SQLite can hold. The former is for a run that is being written,
the latter for one that is over, and for those that must be one file: in memory, or private. All rows are written in the
journal's transactions. An array that a checkpoint shares with the one before is not written again.

There are two files because only checkpoints wait for the disk: what was sent is mostly gone before it gets there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from asyncfed.store.array_file import ArrayFile
from asyncfed.store.page_sums import page_sum

LARGE = 2**18
"""Bytes. Smaller arrays lie together in the checkpoint's row: a row of their own would cost more."""

CHUNK = 2**22
"""Bytes of a row of `chunks`."""

FROZEN = frozenset({"params", "best"})
"""Arrays of a checkpoint that nobody changes: a merge makes a new model."""

ALONE = -1
"""The position of an array that is no row of a larger one."""

READ_ATTEMPTS = 5
"""A reader may find that the writer has written another checkpoint meanwhile."""

ARRAYS, SENT = "arrays", "sent"
"""The files beside the run's own: those of the checkpoint, and what clients sent since."""

PAYLOAD, MESSAGE = "payload", "message"

Dump: TypeAlias = Mapping[str, np.ndarray | list[np.ndarray]]
"""Arrays by name. A list is an array by its rows, at least one, none of which will ever be changed."""


def is_large(array: np.ndarray | list[np.ndarray]) -> bool:
    """Whether an array of a checkpoint is stored by itself, or by its rows."""
    if not isinstance(array, list):
        return array.nbytes >= LARGE
    return array[0].nbytes * len(array) >= LARGE


class ArrayStore:
    """The tables `arrays`, `chunks`, and those that say what the arrays are: `checkpoint_arrays`, `sent_arrays` and
    `released_arrays`."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._path = path
        self._files = {} if path is None else {name: ArrayFile(path, name) for name in (ARRAYS, SENT)}
        self._use_files = path is not None
        self._next_id: int | None = None
        self._stored: dict[int, tuple[ref[np.ndarray], int]] = {}  # by identity: frozen arrays and their numbers
        self._released: list[tuple[str, int]] = []
        self._delete_files = False
        self._tables: set[str] | None = None

    def stay_in_tables(self) -> None:
        """From now on nothing is written to the files beside the run's own."""
        self._use_files = False

    def touches_files(self, arrays: Dump) -> bool:
        """Whether storing these large arrays writes to a file beside the run's own, or frees places in one."""
        return self._use_files and (bool(arrays) or any(file.in_use for file in self._files.values()))

    # ---- writing, always within a transaction ----------------------------------------------------------------------

    @property
    def sent_memory(self) -> ArrayFile | None:
        """The file of what was sent, as a source of memory; None if nothing may lie in files."""
        if not self._use_files:
            return None
        self._start()  # it must know which places are taken
        return self._files[SENT]

    def keep_sent(self, ticket: int, kind: str, sent: np.ndarray, check_sum: int | None = None) -> bool:
        """Store what came with a ticket until the next checkpoint. False if it is small, and belongs elsewhere.

        `check_sum` is that of its bytes, if it is known.
        """
        if sent.nbytes < LARGE:
            return False
        number = self._write(sent, SENT, check_sum)
        self._connection.execute("INSERT INTO sent_arrays VALUES (?, ?, ?)", (ticket, kind, number))
        return True

    def keep_released(self, ticket: int, packed: bytes) -> bool:
        """Store a message for good, in the run's own file. False if it is small, and belongs elsewhere."""
        if len(packed) < LARGE:
            return False
        number = self._write(np.frombuffer(packed, np.uint8), None)
        self._connection.execute("INSERT INTO released_arrays VALUES (?, ?)", (ticket, number))
        return True

    def store(self, arrays: Dump, *, in_tables: bool = False) -> None:
        """Put a checkpoint's large arrays in place of the last one's; what was sent before is dropped.

        With `in_tables` nothing is left in the files beside the run's own.
        """
        rows: list[tuple[str, int, int]] = []
        self._start()
        if in_tables and self._use_files:
            self._use_files, self._stored, self._delete_files = False, {}, True
        for name, array in arrays.items():
            if isinstance(array, list) and array[0].nbytes < LARGE:
                array = np.stack(array)
            if isinstance(array, list):
                rows += [(name, position, self._add(row, frozen=True)) for position, row in enumerate(array)]
            else:
                rows.append((name, ALONE, self._add(array, frozen=name in FROZEN)))
        execute = self._connection.execute
        if rows or execute("SELECT 1 FROM arrays LIMIT 1").fetchone():
            execute("DELETE FROM checkpoint_arrays")
            execute("DELETE FROM sent_arrays")
            self._connection.executemany("INSERT INTO checkpoint_arrays VALUES (?, ?, ?)", rows)
            unused = "NOT IN (SELECT array FROM checkpoint_arrays UNION ALL SELECT array FROM released_arrays)"
            freed = f"SELECT file, place FROM arrays WHERE file IS NOT NULL AND id {unused}"
            self._released = execute(freed).fetchall()
            execute(f"DELETE FROM chunks WHERE array {unused}")
            execute(f"DELETE FROM arrays WHERE id {unused}")
        kept = {number for _, _, number in rows}
        self._stored = {i: (r, number) for i, (r, number) in self._stored.items() if number in kept and r() is not None}

    def sync(self, *, sent: bool) -> None:
        """Wait until the disk has the arrays of the checkpoint, and with `sent` what was sent since."""
        for name, file in self._files.items():
            if sent or name != SENT:
                file.sync()

    def committed(self) -> None:
        """The transaction is done: places that it freed may be used."""
        for name, place in self._released:
            self._files[name].release(place)
        if self._delete_files:
            for file in self._files.values():
                file.delete()
        self._released, self._delete_files = [], False

    def rolled_back(self) -> None:
        """The transaction was undone: the tables know what is stored."""
        self._next_id, self._stored, self._released = None, {}, []
        self._use_files, self._delete_files = self._use_files or self._delete_files, False

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def _start(self) -> None:
        """Before anything is written: learn from the tables which numbers and places are taken."""
        if self._next_id is None:
            (last,) = self._connection.execute("SELECT max(id) FROM arrays").fetchone()
            self._next_id = 0 if last is None else last + 1
            for name, file in self._files.items():
                query = "SELECT place, bytes FROM arrays WHERE file = ?"
                file.set_used(self._connection.execute(query, (name,)))

    def _add(self, array: np.ndarray, *, frozen: bool) -> int:
        """The number of an array of the checkpoint, which is written unless it is stored already."""
        known = self._stored.get(id(array))
        if known is not None and known[0]() is array:
            return known[1]
        number = self._write(array, ARRAYS)
        if frozen:
            self._stored[id(array)] = (ref(array), number)
        return number

    def _write(self, array: np.ndarray, file: str | None, check_sum: int | None = None) -> int:
        """Write an array to this file if files are used, else to rows; its number."""
        self._start()
        assert self._next_id is not None
        number, self._next_id = self._next_id, self._next_id + 1
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        where: tuple[str | None, int | None] = (None, None)
        if file is not None and self._use_files:
            where = (file, self._files[file].write(data))
        else:
            parts = [(number, part, data[at : at + CHUNK]) for part, at in enumerate(range(0, len(data), CHUNK))]
            self._connection.executemany("INSERT INTO chunks VALUES (?, ?, ?)", parts)
        check_sum = page_sum(data) if check_sum is None else check_sum
        row = (number, array.dtype.str, json.dumps(array.shape), len(data), check_sum, *where)
        self._connection.execute("INSERT INTO arrays VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return number

    # ---- reading -------------------------------------------------------------------------------------------------

    def load(self) -> dict[str, Any]:
        """The large arrays of the last checkpoint by name; those stored as rows as a list of them."""
        loaded: dict[str, Any] = {}
        by_number: dict[int, np.ndarray] = {}
        if not self._has_table("checkpoint_arrays"):
            return loaded
        query = "SELECT name, position, array FROM checkpoint_arrays ORDER BY name, position"
        for name, position, number in self._connection.execute(query).fetchall():
            if number not in by_number:
                by_number[number] = self._read(number)
            array = by_number[number]
            if position == ALONE:
                loaded[name] = array
            else:
                loaded.setdefault(name, []).append(array)
            if position != ALONE or name in FROZEN:
                self._stored[id(array)] = (ref(array), number)
        return loaded

    def sent(self, ticket: int, kind: str) -> np.ndarray | None:
        """What came with a ticket since the last checkpoint; None if it is not here."""
        if not self._has_table("sent_arrays"):
            return None
        query = "SELECT array FROM sent_arrays WHERE ticket = ? AND kind = ?"
        row = self._connection.execute(query, (ticket, kind)).fetchone()
        return None if row is None else self._read(row[0])

    def released(self, ticket: int) -> np.ndarray | None:
        """The message that was kept for good with this ticket; None if it is not here."""
        if not self._has_table("released_arrays"):
            return None
        row = self._connection.execute("SELECT array FROM released_arrays WHERE ticket = ?", (ticket,)).fetchone()
        return None if row is None else self._read(row[0])

    def unreadable_tickets(self) -> list[int]:
        """Tickets with which something came that is not what it was."""
        found: list[int] = []
        if self._has_table("sent_arrays"):
            for ticket, number in self._connection.execute("SELECT ticket, array FROM sent_arrays").fetchall():
                try:
                    self._read(number)
                except ValueError:
                    found.append(ticket)
        return found

    def _read(self, number: int) -> np.ndarray:
        query = "SELECT dtype, shape, bytes, sum, file, place FROM arrays WHERE id = ?"
        row = self._connection.execute(query, (number,)).fetchone()
        if row is None:
            raise ValueError(f"array {number} is missing")
        length, expected, file, place = row[2:]
        dtype, shape = np.dtype(row[0]), tuple(json.loads(row[1]))
        if dtype.hasobject or dtype.itemsize * prod(shape) != length:
            raise ValueError(f"array {number} cannot have the shape {shape}")
        array = np.empty(length, np.uint8)
        if file is None:
            self._read_chunks(number, array)
        else:
            self._files[file].read(place, array)
        if page_sum(array.data) != expected:
            raise ValueError(f"array {number} does not agree with its check sum")
        shaped: np.ndarray = array.view(dtype).reshape(shape)
        return shaped

    def _read_chunks(self, number: int, array: np.ndarray) -> None:
        filled, query = 0, "SELECT bytes FROM chunks WHERE array = ? ORDER BY part"
        for (chunk,) in self._connection.execute(query, (number,)):
            array[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
            filled += len(chunk)
        if filled != len(array):
            raise ValueError(f"array {number} is not all there")

    def _has_table(self, name: str) -> bool:
        """Files of earlier versions may lack it."""
        if self._tables is None:
            self._tables = {row[0] for row in self._connection.execute("SELECT name FROM sqlite_master")}
        return name in self._tables
