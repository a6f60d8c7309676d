"""Which entries were meant, in as few bytes as a size that is known beforehand allows.

k increasing indices below n: nothing if k = n; a bit an entry if many are meant; else the code of Elias and Fano,
about 2 + log2(n / k) bits an index (`kernels/index_bits.py`).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from asyncfed.uplinks.chain import Arrays, take

INDEX_BYTES = np.dtype(np.uint8)
BITMAP = -1
"""In place of a number of low bits: a bit an entry."""


def index_bytes(count: int, num_params: int) -> int:
    """How many bytes `count` indices take.

    >>> index_bytes(10_000, 1_000_000), index_bytes(500_000, 1_000_000), index_bytes(7, 7)
    (10703, 125000, 0)
    """
    return _shortest(count, num_params)[0]


def pack_indices(indices: np.ndarray, num_params: int) -> np.ndarray:
    """Increasing indices, as bytes."""
    num_bytes, low = _shortest(indices.size, num_params)
    packed = np.zeros(num_bytes, INDEX_BYTES)
    if not num_bytes:
        return packed
    if low == BITMAP:
        meant = np.zeros(num_params, np.bool_)
        meant[indices] = True
        return np.packbits(meant, bitorder="little")
    from asyncfed.kernels.index_bits import write_indices

    write_indices(indices, low, packed)
    return packed


def unpack_indices(message: Arrays, name: str, count: int, num_params: int) -> np.ndarray:
    """The indices in this array of a message. Raises ValueError if they are not what `pack_indices` gives."""
    num_bytes, low = _shortest(count, num_params)
    packed = take(message, name, (num_bytes,), INDEX_BYTES)
    if not num_bytes:
        return np.arange(num_params)
    if low == BITMAP:
        bits = np.unpackbits(packed, bitorder="little")
        indices = np.flatnonzero(bits)
        sound = indices.size == count and indices[-1] < num_params
    else:
        from asyncfed.kernels.arrays import plain
        from asyncfed.kernels.index_bits import read_indices

        indices = np.empty(count, np.int64)
        sound = read_indices(plain(packed), count, low, num_params, indices)
    if not sound:
        raise ValueError(f"its indices must be {count} that increase and are below {num_params}")
    return indices


@cache
def _shortest(count: int, num_params: int) -> tuple[int, int]:
    """Bytes, and the number of low bits of an index that gives the fewest of them."""
    if count == num_params:
        return 0, BITMAP
    forms = [(num_params, BITMAP)]
    forms += [(count * (low + 1) + ((num_params - 1) >> low), low) for low in range(num_params.bit_length())]
    bits, low = min(forms)
    return (bits + 7) // 8, low
