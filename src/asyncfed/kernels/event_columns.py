"""Blocks of a journal's events, read into columns of numbers.

A block is MessagePack arrays of nine values, one after another (see `store/schema.py`). Reading them as Python objects
takes longer than everything a dashboard does with them. The readable twin is `msgspec.msgpack.decode` and a loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled

FIELDS = 9
NONE = -1
"""What stands for null among tickets, clients and details, none of which is negative."""


class EventColumns(NamedTuple):
    """Events by column; null is -1 among whole numbers and NaN among others."""

    seq: NDArray[np.int64]
    time: NDArray[np.float64]
    kind: NDArray[np.int64]
    ticket: NDArray[np.int64]
    client: NDArray[np.int64]
    version: NDArray[np.int64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    detail: NDArray[np.int64]


def read_event_columns(packed: bytes, count: int) -> EventColumns:
    """The events of one or more blocks joined.

    Args:
        packed: the blocks' bytes.
        count: how many events they hold.

    Raises:
        ValueError: they hold something else.
    """
    whole = np.empty((FIELDS, count), np.int64)
    real = np.empty((FIELDS, count), np.float64)
    end = _read(np.frombuffer(packed, np.uint8), count, whole, real)
    if end != len(packed):
        reached = end if end >= 0 else -1 - end
        raise ValueError(f"{count} events were to end at byte {len(packed)}; reading them ended at {reached}")
    columns: list[NDArray[Any]] = [real[i] if i in (1, 6, 7) else whole[i] for i in range(FIELDS)]
    return EventColumns(*columns)


@compiled
def _read(packed: NDArray[np.uint8], count: int, whole: NDArray[np.int64], real: NDArray[np.float64]) -> int:
    """Where reading ended, behind the last event; -1 less the place of what is no event."""
    at, size = 0, len(packed)
    bits = np.empty(1, np.uint64)
    as_double = bits.view(np.float64)
    word = np.empty(1, np.uint32)
    as_single = word.view(np.float32)
    for event in range(count):
        if at >= size or packed[at] != 0x90 + FIELDS:
            return -1 - at
        at += 1
        for field in range(FIELDS):
            if at >= size:
                return -1 - at
            head = packed[at]
            length = 0
            if head == 0xCC or head == 0xD0:
                length = 1
            elif head == 0xCD or head == 0xD1:
                length = 2
            elif head == 0xCE or head == 0xD2 or head == 0xCA:
                length = 4
            elif head == 0xCF or head == 0xD3 or head == 0xCB:
                length = 8
            elif not (head < 0x80 or head >= 0xE0 or head == 0xC0 or head == 0xC2 or head == 0xC3):
                return -1 - at
            if at + length >= size:
                return -1 - at
            number = np.uint64(0)
            for i in range(length):
                number = (number << np.uint64(8)) | np.uint64(packed[at + 1 + i])
            if head == 0xC0:
                whole[field, event], real[field, event] = NONE, np.nan
            elif head == 0xCB:
                bits[0] = number
                whole[field, event], real[field, event] = NONE, as_double[0]
            elif head == 0xCA:
                word[0] = np.uint32(number)
                whole[field, event], real[field, event] = NONE, as_single[0]
            else:
                value = np.int64(number)
                if length == 0:
                    value = np.int64(head & 1) if head >= 0xC2 and head < 0xE0 else np.int64(np.int8(head))
                elif head >= 0xD0 and length < 8:  # signed, and shorter than what it is kept in
                    half = np.int64(1) << np.int64(8 * length - 1)
                    value = (value ^ half) - half
                whole[field, event], real[field, event] = value, np.float64(value)
            at += 1 + length
    return at
