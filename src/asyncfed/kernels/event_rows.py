"""Rows of the journal's events as MessagePack, written by compiled loops.

The bytes are those of `core.record.pack_rows`, its readable twin: whole numbers in the shortest form that holds them,
floats in eight bytes, nothing as nil, nine values to a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled

LONGEST_ROW = 1 + 9 * 9
"""Bytes that the longest row takes: its head, and nine values of a byte and eight more."""

_ROW_OF_NINE, _NIL, _FLOAT = np.uint8(0x99), np.uint8(0xC0), np.uint8(0xCB)
_FORMS = ((2**8, 0xCC, 1), (2**16, 0xCD, 2), (2**32, 0xCE, 4))
"""Below which number a whole one takes so many bytes, after this one that says so."""


@compiled
def put_nothing(out: NDArray[Any], at: int) -> int:
    """Write nil at this place; answers with the place behind it."""
    out[at] = _NIL
    return at + 1


@compiled
def put_whole(out: NDArray[Any], at: int, value: int) -> int:
    """Write a whole number of 0 or more, or nil for a negative one."""
    if value < 0:
        return put_nothing(out, at)
    if value < 128:
        out[at] = value
        return at + 1
    head, size = 0xCF, 8
    for limit, code, count in _FORMS:
        if value < limit:
            head, size = code, count
            break
    out[at] = head
    for i in range(size):
        out[at + 1 + i] = (value >> (8 * (size - 1 - i))) & 0xFF
    return at + 1 + size


@compiled
def put_float(out: NDArray[Any], at: int, value: float, room: NDArray[Any]) -> int:
    """Write a float; `room` is an array of one float64, to look at its bytes in."""
    room[0] = value
    bits = room.view(np.uint64)[0]
    out[at] = _FLOAT
    for i in range(8):
        out[at + 1 + i] = (bits >> np.uint64(8 * (7 - i))) & np.uint64(0xFF)
    return at + 9


@compiled
def put_row(
    out: NDArray[Any],
    at: int,
    room: NDArray[Any],
    seq: int,
    time: float,
    kind: int,
    ticket: int,
    client: int,
    version: int,
    has_numbers: bool,
    a: float,
    b: float,
    detail: int,
) -> int:
    """Write one event; without numbers, `a` and `b` are nil, and so is a detail below 0."""
    out[at] = _ROW_OF_NINE
    at = put_whole(out, at + 1, seq)
    at = put_float(out, at, time, room)
    at = put_whole(out, at, kind)
    at = put_whole(out, at, ticket)
    at = put_whole(out, at, client)
    at = put_whole(out, at, version)
    if has_numbers:
        at = put_float(out, at, a, room)
        at = put_float(out, at, b, room)
    else:
        at = put_nothing(out, put_nothing(out, at))
    return put_whole(out, at, detail)
