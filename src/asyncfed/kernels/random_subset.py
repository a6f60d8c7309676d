"""k of n indices, all subsets equally likely, from a key alone: Floyd's algorithm.

The slow twin is in `kernels/codec_reference.py`.

J. Bentley & R. Floyd, "A Sample of Brilliance", Communications of the ACM 30(9), 1987.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import GOLDEN
from asyncfed.kernels.compiled import compiled

STEP = np.uint64(GOLDEN)
HALF = np.uint64(32)
LOWER = np.uint64(0xFFFF_FFFF)


@compiled
def random_subset(key: np.uint64, n: int, count: int) -> NDArray[np.int64]:
    """`count` different indices below n < 2**32, in increasing order; the draws are those of `core.random.Stream`."""
    chosen = np.zeros(n, np.bool_)
    word = np.uint64(key)
    for j in range(n - count, n):
        word += STEP
        z = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
        z ^= z >> np.uint64(31)
        bound = np.uint64(j + 1)  # multiply-shift, the upper 64 of 128 bits, in two halves
        drawn = np.int64(((z >> HALF) * bound + (((z & LOWER) * bound) >> HALF)) >> HALF)
        if chosen[drawn]:
            chosen[j] = True
        else:
            chosen[drawn] = True
    out = np.empty(count, np.int64)
    place = 0
    for i in range(n):
        if chosen[i]:
            out[place] = i
            place += 1
    return out
