"""Params that worker processes read and write where they lie, in place of a pickled copy there and another one back."""

from __future__ import annotations

import shutil
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np

from asyncfed.problems.protocol import Array

SMALLEST = 1 << 19
"""Bytes of a call's params below which pickling them is as fast."""

_FOLDER = Path("/dev/shm")


class Place(NamedTuple):
    """What a worker needs in order to find the rows."""

    name: str
    shape: tuple[int, ...]
    dtype: str


class SharedRows:
    """One block of memory for the params of one call after another; it grows, and `close` gives it back."""

    def __init__(self) -> None:
        self._blocks: list[SharedMemory] = []  # one, or none
        finalize(self, _give_back, self._blocks)  # if nobody calls `close`

    def put(self, rows: Array) -> Place | None:
        """Copy rows to where workers see them; None if they are few, or if there is no room for them."""
        if rows.nbytes < SMALLEST or not self._grow(rows.nbytes):
            return None
        (memory,) = self._blocks
        place = Place(memory.name, rows.shape, rows.dtype.str)
        _rows_in(memory, place)[:] = rows
        return place

    def get(self, place: Place) -> Array:
        """A copy of what workers have made of the rows."""
        return _rows_in(self._blocks[0], place).copy()

    def close(self) -> None:
        _give_back(self._blocks)

    def _grow(self, needed: int) -> bool:
        if self._blocks and self._blocks[0].size >= needed:
            return True
        self.close()
        # Memory beyond what the system allows is granted, and the process killed when it writes there: so ask before.
        if _FOLDER.exists() and shutil.disk_usage(_FOLDER).free < 2 * needed:
            return False
        try:
            self._blocks.append(SharedMemory(create=True, size=needed))
        except OSError:
            return False
        return True


def _give_back(blocks: list[SharedMemory]) -> None:
    while blocks:
        memory = blocks.pop()
        memory.close()
        memory.unlink()


_attached: SharedMemory | None = None
"""In a worker process, the block that it saw last."""


def attached_rows(place: Place) -> Array:
    """In a worker process: the rows themselves."""
    global _attached
    if _attached is None or _attached.name != place.name:
        if _attached is not None:
            _attached.close()
        _attached = SharedMemory(place.name)
    return _rows_in(_attached, place)


def _rows_in(memory: SharedMemory, place: Place) -> np.ndarray[Any, Any]:
    return np.ndarray(place.shape, np.dtype(place.dtype), memory.buf)
