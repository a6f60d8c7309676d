"""Standard normal numbers that depend on nothing but a key and their index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from asyncfed.core.random import GOLDEN, MASK


def keyed_uniforms(key: int, count: int) -> NDArray[np.float64]:
    """The first numbers of `core.random.Stream(key).unit()`, all at once: strictly between 0 and 1.

    >>> from asyncfed.core.random import Stream
    >>> keyed_uniforms(7, 1).tolist() == [Stream(7).unit()]
    True
    """
    z = np.arange(1, count + 1, dtype=np.uint64)
    z *= np.uint64(GOLDEN)  # words of 64 bits, which wrap around as SplitMix64 wants them to
    z += np.uint64(key & MASK)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    z ^= z >> np.uint64(31)
    uniforms: NDArray[np.float64] = ((z >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniforms


def keyed_normals(key: int, count: int) -> NDArray[np.float64]:
    """Independent draws from N(0, 1): the inverse of the normal distribution function at `keyed_uniforms`.

    The same key gives the same numbers. They are at most 8.1 in size, which a draw exceeds once in 10**15.

    Args:
        key: 64 bits, made by `core.random` or drawn from the machine's entropy.
        count: how many.

    >>> keyed_normals(7, 3).round(3).tolist()
    [-0.28, -2.125, 1.286]
    """
    normals: NDArray[np.float64] = ndtri(keyed_uniforms(key, count))
    return normals
