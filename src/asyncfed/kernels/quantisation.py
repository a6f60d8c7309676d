"""Entries as a few bits each: levels rounded at random (QSGD), and signs. Packed from the lowest bit of the first byte.

The slow twins are in `kernels/codec_reference.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import GOLDEN
from asyncfed.kernels.compiled import compiled

STEP = np.uint64(GOLDEN)


@compiled
def bucket_norms(vector: NDArray[Any], bucket: int) -> NDArray[np.float64]:
    """The Euclidean norm of each bucket of so many entries, added up in order in double precision."""
    norms = np.empty((vector.size + bucket - 1) // bucket, np.float64)
    for b in range(norms.size):
        first, last = b * bucket, min((b + 1) * bucket, vector.size)
        total = 0.0
        for i in range(first, last):
            value = np.float64(vector[i])
            total += value * value
        if total < 1e-280 or total == np.inf:  # squares may have left the range of floats: once more, scaled
            largest = 0.0
            for i in range(first, last):
                largest = max(largest, abs(np.float64(vector[i])))
            total = 0.0
            if 0.0 < largest < np.inf:
                for i in range(first, last):
                    value = np.float64(vector[i]) / largest
                    total += value * value
                norms[b] = largest * np.sqrt(total)
            else:
                norms[b] = largest
        else:
            norms[b] = np.sqrt(total)
    return norms


@compiled
def bucket_mean_sizes(vector: NDArray[Any], bucket: int) -> NDArray[np.float64]:
    """The mean size |v_i| of the entries of each bucket, added up in order in double precision."""
    means = np.empty((vector.size + bucket - 1) // bucket, np.float64)
    for b in range(means.size):
        first, last = b * bucket, min((b + 1) * bucket, vector.size)
        total = 0.0
        for i in range(first, last):
            total += abs(np.float64(vector[i]))
        means[b] = total / (last - first)
    return means


@compiled
def write_levels(
    vector: NDArray[Any], scales: NDArray[Any], bucket: int, levels: int, bits: int, key: np.uint64, out: NDArray[Any]
) -> None:
    """Round |v| * levels / scale up or down at random, so that the mean is right, and write its sign and level.

    The code of an entry is `levels` plus its signed level. Entry i uses number i of `core.random.Stream(key)`. Where
    the scale of a bucket is zero or not finite, all its levels are 0.
    """
    word, pending, held, place = np.uint64(key), np.uint64(0), 0, 0
    for b in range(scales.size):
        scale = np.float64(scales[b])
        usable = 0.0 < scale < np.inf
        for i in range(b * bucket, min((b + 1) * bucket, vector.size)):
            word += STEP
            code = np.int64(levels)
            if usable:
                z = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
                z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
                z ^= z >> np.uint64(31)
                chance = np.float64(np.int64(z >> np.uint64(12))) * 2.0**-52
                value = np.float64(vector[i])
                level: Any = min(np.int64(abs(value) / scale * levels + chance), levels)
                code += level if value > 0.0 else -level
            pending |= np.uint64(code) << np.uint64(held)
            held += bits
            while held >= 8:
                out[place] = np.uint8(pending & np.uint64(255))
                pending >>= np.uint64(8)
                place += 1
                held -= 8
    if held > 0:
        out[place] = np.uint8(pending)


@compiled
def read_levels(
    packed: NDArray[np.uint8], scales: NDArray[Any], bucket: int, levels: int, bits: int, out: NDArray[Any]
) -> bool:
    """Write scale * (level / levels) for every entry into `out`; False if a code, or a bit that is left, is not due."""
    steps = np.empty(2 * levels + 1, np.float64)
    for code in range(steps.size):
        steps[code] = (code - levels) / levels
    mask = (np.int64(1) << bits) - 1
    pending: Any = np.int64(0)
    held, place = 0, 0
    for b in range(scales.size):
        scale = np.float64(scales[b])
        for i in range(b * bucket, min((b + 1) * bucket, out.size)):
            while held < bits:
                pending |= np.int64(packed[place]) << held
                place += 1
                held += 8
            code = pending & mask
            pending >>= bits
            held -= bits
            if code >= steps.size:
                return False
            out[i] = scale * steps[code]
    return bool(pending == 0)


@compiled
def read_signs(packed: NDArray[np.uint8], scales: NDArray[Any], bucket: int, out: NDArray[Any]) -> None:
    """Write the scale of its bucket for every entry whose bit is set, its negative for the others."""
    for b in range(scales.size):
        scale = scales[b]
        for i in range(b * bucket, min((b + 1) * bucket, out.size)):
            out[i] = scale if packed[i >> 3] >> (i & 7) & 1 else -scale
