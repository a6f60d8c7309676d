"""A file beside a run's own in which large arrays lie while it is being written: `RUN.sqlite-arrays`, say.

SQLite would write each of them twice, to its log and then to its file, in pages of 4 KiB. Here an array is written
once, to a place that nothing refers to. It counts from the moment that a row of the run's file says where it is, which
is written in a transaction; until then, and when the row is deleted, the place is free. So whatever kills the process,
every row refers to bytes that are all there.

What is to be written may be put into free places of the file to begin with, which are then memory of this process
(`take`): the system writes that to the disk by itself, also if the process is killed, and nothing is copied. Such a
place is free when neither a row nor an array of this process refers to it.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from asyncfed.core.errors import JournalError
from asyncfed.store.error_messages import DISK_FULL

ALIGNMENT = 4096
LONGEST_WRITE = 2**30
"""Bytes: systems write a little less than 2 GiB at a time at most."""

MAPPED_AT_ONCE = 16
"""So many places of one length are made memory together."""


class ArrayFile:
    """Places in a file. Some are used, because rows refer to them; the rest of the file is free.

    Args:
        run: the run's own file.
        name: what the name of this one ends in, after a hyphen.
    """

    def __init__(self, run: Path, name: str) -> None:
        self.path = run.with_name(f"{run.name}-{name}")
        self._run = run
        self._file: int | None = None
        self._unsynced = False
        self._used: dict[int, int] = {}
        self._mapped: dict[int, dict[int, memoryview]] = {}  # by length, and then by place
        self._place_at: dict[int, int] = {}  # by address
        self._lent: set[int] = set()
        self._can_map = True
        self._segments: dict[int, int] = {}  # parts of the file that are memory: where they begin, how long they are

    def set_used(self, used: Iterable[tuple[int, int]]) -> None:
        """All places that rows refer to."""
        self._used = dict(used)

    @property
    def in_use(self) -> bool:
        """Whether there is any."""
        return bool(self._used)

    def write(self, data: memoryview) -> int:
        """Write to a place that is free, unless it is in the file already; where it is. It is used from now on."""
        place = self._place_at.get(_address(data)) if self._lent else None
        if place is None:
            place = self._find_place(len(data))
            with self._explain_errors():
                file, done = self._open(), 0
                while done < len(data):
                    done += os.pwrite(file, data[done : done + LONGEST_WRITE], place + done)
        self._used[place], self._unsynced = len(data), True
        return place

    def _open(self) -> int:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        return self._file

    def _find_place(self, length: int) -> int:
        """The first gap that is long enough, or the end. There are few arrays: they are large."""
        end = 0
        for place, used in sorted({**self._used, **self._segments}.items()):
            if place - end >= length:
                break
            end = max(end, _aligned(place + used))
        return end

    def take(self, length: int) -> memoryview | None:
        """Memory that is a free place of the file; None if there is no such thing, or no room for it.

        Nothing refers to the place until what it holds is written.
        """
        places = self._mapped.get(length, {})
        place = next((place for place in places if place not in self._used and place not in self._lent), None)
        if place is None:
            place = self._map_places(length)
        if place is None:
            return None
        self._lent.add(place)
        return self._mapped[length][place]

    def give_back(self, memory: memoryview) -> None:
        """No array of this process uses it any more."""
        place = self._place_at.get(_address(memory))
        if place is not None:  # the file was not deleted meanwhile
            self._lent.discard(place)

    def _map_places(self, length: int) -> int | None:
        """Make a free part of the file memory; the first of its places. None if the disk or the system will not.

        The disk gives the room first: else using the memory would end the process when the disk is full. Where there is
        not room for so much at once, `write` still finds some for one array, or says that the disk is full.
        """
        allocate, room = getattr(os, "posix_fallocate", None), _aligned(length)
        begin = self._find_place(MAPPED_AT_ONCE * room)
        if allocate is None or not self._can_map or begin % mmap.ALLOCATIONGRANULARITY:
            return None
        with self._explain_errors():
            file = self._open()
            ends = os.fstat(file).st_size
        try:
            allocate(file, begin, MAPPED_AT_ONCE * room)
            memory = memoryview(mmap.mmap(file, MAPPED_AT_ONCE * room, offset=begin))
        except OSError:
            self._can_map = False
            with suppress(OSError):
                os.ftruncate(file, ends)  # some of the room may have been given
            return None
        self._segments[begin] = len(memory)
        places = self._mapped.setdefault(length, {})
        for place in range(begin, begin + len(memory), room):
            places[place] = memory[place - begin : place - begin + length]
            self._place_at[_address(places[place])] = place
        return begin

    def release(self, place: int) -> None:
        """Nothing refers to this any more, and that is on disk."""
        self._used.pop(place, None)

    def sync(self) -> None:
        """Wait until the disk has what was written."""
        if self._file is not None and self._unsynced:
            self._unsynced = False
            if not os.fstat(self._file).st_nlink:
                raise JournalError(
                    f"{self.path} was deleted while this run was writing to it, and the run was stopped. The arrays in "
                    "it are lost, and the run with them, unless you have a copy: run the experiment anew."
                )
            with self._explain_errors():
                getattr(os, "fdatasync", os.fsync)(self._file)

    def read(self, place: int, array: np.ndarray) -> None:
        """Fill an array of bytes with what is there. Raises ValueError if the file ends before."""
        try:
            with self.path.open("rb", buffering=0) as file:
                file.seek(place)
                view, done = array.data, 0
                while done < len(view):
                    got = file.readinto(view[done:])
                    if not got:
                        raise ValueError(f"{self.path.name} ends before an array in it does")
                    done += got
        except FileNotFoundError as error:
            raise JournalError(
                f"{self._run} was not closed by its last writer, and its large arrays are in {self.path.name}, which "
                "is not there. Put both into one folder."
            ) from error

    def delete(self) -> None:
        """Nothing refers to any place."""
        self.close()
        self._used = {}
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close it; writing opens it again. Arrays keep their memory."""
        self._mapped, self._place_at, self._segments, self._lent = {}, {}, {}, set()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in DISK_FULL
            what = "is full" if full else f"failed ({error.strerror})"
            raise JournalError(
                f"The disk that holds {self.path} {what}. Everything up to the last commit is safe; make room, then "
                f"`asyncfed resume {self._run}`."
            ) from error


def _aligned(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def _address(data: memoryview) -> int:
    address: int = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    return address
