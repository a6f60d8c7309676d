"""Memory that a server shares with the processes of its clients, so that models need not pass through a socket.

It is that of files without a name (Linux's `memfd`): when the last process that has mapped one is gone, however it
ended, nothing is left of it. There are two sorts, and the system enforces what clients may do with each:

- `SharedModels`, one for all clients, which read the versions of the model in it. It was sealed after the server had
  mapped it (`F_SEAL_FUTURE_WRITE`), so that nobody else can map it for writing, or write to it.
- A result slot for each process, which the server reads and the process writes, at any time and whatever it likes. The
  server therefore copies what is there before it looks at it, and looks at nothing but the copy. It is sealed against
  another length (`F_SEAL_SHRINK`): reading what is not there any more would end the server.

Descriptors are closed once the memory is mapped; so another process of the same user does not find them in `/proc`.
Where the system lacks any of this, nothing is shared, and arrays pass through the socket.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any
from weakref import finalize, ref

import numpy as np

from asyncfed.kernels.recycled_memory import empty

MOST_BYTES = 2**32
"""What the models of a run may take of shared memory; versions beyond it lie elsewhere, and pass through sockets."""

SPARE_MODELS = 8
"""So many versions more than there are clients have room: the present one, the best one, those being merged."""

_ADD_SEALS, _SEAL, _SHRINK, _GROW, _FUTURE_WRITE = 1033, 0x1, 0x2, 0x4, 0x10  # of Linux; Python does not name them all


class SharedFile:
    """A file without a name, on its way into the memory of a process. A process that is being started may be sent it.

    Args:
        descriptor: the open file.
        length: in bytes.
    """

    def __init__(self, descriptor: int, length: int) -> None:
        self.descriptor, self.length = descriptor, length

    @classmethod
    def create(cls, name: str, length: int) -> SharedFile | None:
        """A new one, which nobody can make shorter or longer; None if the system has none."""
        make = getattr(os, "memfd_create", None)
        if make is None or sys.byteorder != "little":  # bodies of messages are little-endian
            return None
        try:
            file = cls(make(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), length)
        except OSError:
            return None
        try:
            os.ftruncate(file.descriptor, length)
            file.seal(_SHRINK | _GROW)
        except OSError:
            file.close()
            return None
        return file

    def seal(self, seals: int) -> None:
        """Take these possibilities from everybody, for good."""
        from fcntl import fcntl

        fcntl(self.descriptor, _ADD_SEALS, seals)

    def map(self, *, write: bool) -> np.ndarray:
        """Its bytes as memory of this process. They are unmapped when nobody refers to the array any more."""
        return np.frombuffer(_map(self.descriptor, self.length, write), np.uint8)

    def close(self) -> None:
        """Close the descriptor. What is mapped stays."""
        os.close(self.descriptor)

    def __reduce__(self) -> tuple[Callable[..., SharedFile], tuple[Any, int]]:
        return _received, (reduction.DupFd(self.descriptor), self.length)


def _received(descriptor: Any, length: int) -> SharedFile:
    return SharedFile(descriptor.detach(), length)


def _map(descriptor: int, length: int, write: bool) -> memoryview:
    """Map a file. Python's own `mmap` would keep a descriptor, which others could find."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    access = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
    address = libc.mmap(None, length, access, mmap.MAP_SHARED, descriptor, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    block = (ctypes.c_ubyte * length).from_address(address)
    finalize(block, libc.munmap, address, length).atexit = False
    memory = memoryview(block).cast("B")
    return memory if write else memory.toreadonly()


class SharedModels:
    """Room for versions of a model, from which `kernels.recycled_memory` makes arrays.

    Args:
        file: sealed by now.
        memory: its bytes, as this process alone may change them.
        model_bytes: the length of a version.
    """

    def __init__(self, file: SharedFile, memory: np.ndarray, model_bytes: int) -> None:
        self.file = file
        self._length, self._model_bytes = file.length, model_bytes
        self._first = _address(memory)
        places = range(0, file.length, _whole_pages(model_bytes))
        self._free = [memory.data[place : place + model_bytes] for place in reversed(places)]
        self._copies: dict[int, tuple[ref[np.ndarray], np.ndarray]] = {}

    @classmethod
    def create(cls, model_bytes: int, num_clients: int) -> SharedModels | None:
        """Room for as many versions as are needed, within `MOST_BYTES`; None if the system cannot protect it."""
        room = _whole_pages(model_bytes)
        count = min(num_clients + SPARE_MODELS, MOST_BYTES // room)
        file = SharedFile.create("asyncfed models", count * room) if count else None
        if file is None:
            return None
        try:
            memory = file.map(write=True)
            file.seal(_FUTURE_WRITE | _SEAL)
        except OSError:
            file.close()
            return None
        return cls(file, memory, model_bytes)

    def take(self, length: int) -> memoryview | None:
        """Room for a version; None for anything of another length, or if there is none left."""
        return self._free.pop() if length == self._model_bytes and self._free else None

    def give_back(self, memory: memoryview) -> None:
        """Nobody uses it any more."""
        self._free.append(memory)

    def place(self, array: np.ndarray) -> int | None:
        """Where clients find this version. It is copied if it lies elsewhere; None if there is no room for that.

        The place is its own until nobody refers to the array any more, which must not be changed.
        """
        place = _address(array) - self._first
        if 0 <= place < self._length:
            return place
        known = self._copies.get(id(array))
        if known is None or known[0]() is not array:
            self._copies = {number: kept for number, kept in self._copies.items() if kept[0]() is not None}
            copy = empty(array.size, array.dtype, self)
            place = _address(copy) - self._first
            if not 0 <= place < self._length:
                return None
            np.copyto(copy, array.reshape(-1))
            known = self._copies[id(array)] = (ref(array), copy)
        return _address(known[1]) - self._first

    def close(self) -> None:
        """No more processes will be started. Arrays keep their memory."""
        self.file.close()


def create_result_slot(length: int) -> tuple[SharedFile, np.ndarray] | None:
    """The file to be sent to a client's process, and its bytes, to be read here; None if the system has none."""
    file = SharedFile.create("asyncfed result", length)
    if file is None:
        return None
    try:
        file.seal(_SEAL)
        return file, file.map(write=False)
    except OSError:
        file.close()
        return None


def _whole_pages(length: int) -> int:
    return -(-length // mmap.PAGESIZE) * mmap.PAGESIZE


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
