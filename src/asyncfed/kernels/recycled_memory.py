"""Memory for large arrays that come and go: the system's fresh pages take longer to get than to fill.

Who may have it again is decided by Python's own references. An array made here is the only one that knows its memory:
views of it, messages that are being sent and whatever else uses it refer to the array. When the last reference is gone,
the memory waits for the next array of its size. So nobody who holds a version of a model can see it change.
"""

from __future__ import annotations

import sys
from collections import deque
from math import prod
from typing import Any
from weakref import finalize, ref

import numpy as np
from numpy.typing import NDArray

LARGE = 2**18
"""Bytes. Smaller arrays are quicker made anew."""

MOST_SPARE = 8
"""So many pieces of memory of one size wait at most; the rest goes back to the system."""

_spare: dict[int, deque[memoryview]] = {}
_finalizers: dict[int, tuple[ref[Any], finalize[Any, Any]]] = {}


def empty(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array filled with anything, as `numpy.empty` makes it."""
    length = prod(shape) * dtype.itemsize if isinstance(shape, tuple) else shape * dtype.itemsize
    if length < LARGE:
        return np.empty(shape, dtype)
    spare = _spare.get(length)
    try:
        memory = spare.popleft() if spare else np.empty(length, np.uint8).data
    except IndexError:  # another thread was quicker
        memory = np.empty(length, np.uint8).data
    array = _wrap(memory, dtype)
    return array.reshape(shape) if isinstance(shape, tuple) and len(shape) != 1 else array


def empty_like(array: NDArray[Any]) -> NDArray[Any]:
    """The same, with the shape and the type of another one."""
    return np.empty_like(array) if array.nbytes < LARGE else empty(array.shape, array.dtype)


def renewed(array: NDArray[Any], holders: int) -> NDArray[Any] | None:
    """An array in the place of this one, with the same memory and numbers, if nobody can see it changed.

    Nobody can if it was made here and nothing refers to it but the caller's own `holders` references; then they must
    be given up. Otherwise None.
    """
    known = _finalizers.get(id(array))
    if known is None or known[0]() is not array or sys.getrefcount(array) > holders + 2:  # `array`, and the call
        return None
    details = known[1].detach()
    assert details is not None
    _finalizers.pop(id(array), None)
    memory = details[2][1]
    return _wrap(memory, array.dtype)


def _wrap(memory: memoryview, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new array on this memory. As it does not own it, views of it refer to the array itself."""
    array = np.frombuffer(memory, dtype)
    number = id(array)
    _finalizers[number] = (ref(array), finalize(array, _take_back, number, memory))
    _finalizers[number][1].atexit = False
    return array


def _take_back(number: int, memory: memoryview) -> None:
    _finalizers.pop(number, None)
    spare = _spare.setdefault(len(memory), deque())
    if len(spare) < MOST_SPARE:
        spare.append(memory)
