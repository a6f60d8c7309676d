"""Increasing indices as bits: the code of Elias and Fano, of a length that is known before the indices are.

Index number i is split into its `low` lowest bits, stored as they are one after another, and the rest h, stored as a
one at place h + i of a second string of bits: since h never falls, the places grow. k indices below n take
k * low bits and k + (n - 1 >> low) bits. Bits are numbered from the lowest of the first byte.

The slow twin is in `kernels/codec_reference.py`.

P. Elias, "Efficient Storage and Retrieval by Content and Address of Static Files", J. ACM 21(2), 1974.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled


@compiled
def write_indices(indices: NDArray[np.int64], low: int, out: NDArray[np.uint8]) -> None:
    """Write increasing indices into `out`, which is all zeros."""
    base, mask = indices.size * low, (np.int64(1) << low) - 1
    for i in range(indices.size):
        rest, place = indices[i] & mask, i * low
        written = 0
        while written < low:
            out[place >> 3] |= np.uint8((rest << (place & 7)) & 255)
            taken = 8 - (place & 7)
            rest >>= taken
            place += taken
            written += taken
        place = base + (indices[i] >> low) + i
        out[place >> 3] |= np.uint8(1 << (place & 7))


@compiled
def read_indices(packed: NDArray[np.uint8], count: int, low: int, below: int, out: NDArray[np.int64]) -> bool:
    """Read `count` indices into `out`; False unless they increase, are below `below`, and no other bit is set."""
    base, found = count * low, 0
    last: Any = np.int64(-1)
    for place in range(base, 8 * packed.size):
        if packed[place >> 3] >> (place & 7) & 1:
            if found == count:
                return False
            index: Any = (place - base - found) << low
            at, read = found * low, 0
            while read < low:
                taken = min(8 - (at & 7), low - read)
                index |= (np.int64(packed[at >> 3] >> (at & 7)) & ((1 << taken) - 1)) << read
                at += taken
                read += taken
            if index <= last or index >= below:
                return False
            out[found] = last = index
            found += 1
    return found == count
