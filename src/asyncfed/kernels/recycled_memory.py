"""Memory for large arrays that come and go: the system's fresh pages take longer to get than to fill.

Who may have it again is decided by Python's own references. An array made here is the only one that knows its memory:
views of it, messages that are being sent and whatever else uses it refer to the array. When the last reference is gone,
the memory waits for the next array of its size. So nobody who holds a version of a model can see it change.

Memory comes from the system, or from a `MemorySource` of the caller's; an array in the place of another one, the next
version of a model, gets it from where that one has it.
"""

from __future__ import annotations

import sys
from math import prod
from typing import Any, NamedTuple, Protocol
from weakref import finalize, ref

import numpy as np
from numpy.typing import NDArray

LARGE = 2**18
"""Bytes. Smaller arrays are quicker made anew."""

MOST_SPARE = 8
"""So many pieces of memory of one size wait at most; the rest goes back to the system."""


class MemorySource(Protocol):
    """Where large arrays get their memory from."""

    def take(self, length: int) -> memoryview | None:
        """So many bytes of memory that nobody uses; None if there is none left."""
        ...

    def give_back(self, memory: memoryview) -> None:
        """Nobody uses it any more. May be called by any thread."""
        ...


class SystemMemory:
    """Memory of this process alone. What was used last is used next: it may still be in the processor's caches."""

    def __init__(self) -> None:
        self.spare: dict[int, list[memoryview]] = {}

    def take(self, length: int) -> memoryview:
        """Memory that was used before, or new one."""
        try:
            return self.spare[length].pop()
        except LookupError:  # there is none, or another thread was quicker
            return np.empty(length, np.uint8).data

    def give_back(self, memory: memoryview) -> None:
        """Keep it, unless enough of this size waits."""
        spare = self.spare.setdefault(len(memory), [])
        if len(spare) < MOST_SPARE:
            spare.append(memory)


class _Known(NamedTuple):
    """An array that was made here."""

    array: ref[Any]
    finalizer: finalize[Any, Any]
    memory: memoryview
    source: MemorySource


_system = SystemMemory()
_known: dict[int, _Known] = {}


def empty(shape: int | tuple[int, ...], dtype: np.dtype[Any], source: MemorySource | None = None) -> NDArray[Any]:
    """An array filled with anything, as `numpy.empty` makes it; in memory of `source`, if that has any left."""
    length = prod(shape) * dtype.itemsize if isinstance(shape, tuple) else shape * dtype.itemsize
    if length < LARGE:
        return np.empty(shape, dtype)
    memory = None if source is None else source.take(length)
    if source is None or memory is None:
        source, memory = _system, _system.take(length)
    array = _wrap(memory, dtype, source)
    return array.reshape(shape) if isinstance(shape, tuple) and len(shape) != 1 else array


def empty_like(array: NDArray[Any]) -> NDArray[Any]:
    """The same, with the shape and the type of another one, and memory from where that one has it."""
    if array.nbytes < LARGE:
        return np.empty_like(array)
    known = _known.get(id(array))
    source = known.source if known is not None and known.array() is array else None
    return empty(array.shape, array.dtype, source)


def renew(owner: object, name: str) -> NDArray[Any] | None:
    """Put an array with the same memory and numbers in the place of the one that is `owner`'s attribute of this name.

    That is done if the array was made here and nothing else refers to it: then nobody can see the new one changed.
    Returns the new one, or None if all is left as it was.
    """
    if _count_references(owner, name) > _REFERENCES_OF_ONE_OWNER:
        return None
    array: NDArray[Any] = getattr(owner, name)
    known = _known.get(id(array))
    if known is None or known.array() is not array:
        return None
    known.finalizer.detach()
    _known.pop(id(array), None)
    again = _wrap(known.memory, array.dtype, known.source)
    setattr(owner, name, again)  # at once: whatever happens next, the memory has one array, which its owner holds
    return again


def _count_references(owner: object, name: str) -> int:
    """To what this attribute is. No variable holds it here: some interpreters do not count those of running calls."""
    return sys.getrefcount(getattr(owner, name))


class _Owner:
    """Of something that nobody else refers to."""

    def __init__(self) -> None:
        self.owned = object()


_REFERENCES_OF_ONE_OWNER = _count_references(_Owner(), "owned")


def _wrap(memory: memoryview, dtype: np.dtype[Any], source: MemorySource) -> NDArray[Any]:
    """A new array on this memory. As it does not own it, views of it refer to the array itself."""
    array = np.frombuffer(memory, dtype)
    number = id(array)
    finalizer = finalize(array, _take_back, number, memory, source)
    finalizer.atexit = False
    _known[number] = _Known(ref(array), finalizer, memory, source)
    return array


def _take_back(number: int, memory: memoryview, source: MemorySource) -> None:
    _known.pop(number, None)
    source.give_back(memory)
