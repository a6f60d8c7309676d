"""The indices of the k entries of largest size: a radix selection on the bits of the floats.

Without its sign bit, the bits of a float read as a whole number grow with its size; infinity is larger than all numbers
and NaN larger than infinity. So the k-th largest is found digit by digit, from a histogram of the leading digit first,
then among those that share it. Nothing is sorted, and nothing depends on rounding.

The slow twin is in `kernels/codec_reference.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled

DIGIT = 11
"""Bits of a digit: a histogram of 2,048 counts stays in the fastest cache."""


def largest_entries(vector: NDArray[Any], count: int) -> NDArray[np.int64]:
    """The indices, in increasing order, of the `count` largest in size; of equal ones those of lower index.

    Args:
        vector: float32 or float64, contiguous.
        count: from 1 to the length of the vector.
    """
    if vector.dtype == np.float32:
        return _select(vector.view(np.uint32), np.uint32(0x7FFF_FFFF), 31, count)
    return _select(vector.view(np.uint64), np.uint64(0x7FFF_FFFF_FFFF_FFFF), 63, count)


@compiled
def _select(bits: NDArray[Any], mask: Any, width: int, count: int) -> NDArray[np.int64]:
    threshold, left = _kth_largest(bits, mask, width, count)
    out = np.empty(count + 1, np.int64)  # one more, so that the loop may write before it knows whether to keep
    place = 0
    for i in range(bits.size):
        size = bits[i] & mask
        if size == threshold:
            if left > 0:
                out[place] = i
                place += 1
                left -= 1
        else:
            out[place] = i
            place += 1 if size > threshold else 0
    return out[:count]


@compiled
def _kth_largest(bits: NDArray[Any], mask: Any, width: int, count: int) -> Any:
    """The count-th largest size, and how many entries of exactly this size are among the `count` largest."""
    histogram = np.zeros(1 << DIGIT, np.int64)
    shift = width - DIGIT
    for i in range(bits.size):
        histogram[np.int64((bits[i] & mask) >> shift)] += 1
    digit, left = _digit_of(histogram, count)
    found = np.empty(histogram[digit], bits.dtype)
    num = 0
    for i in range(bits.size):
        size = bits[i] & mask
        if np.int64(size >> shift) == digit:
            found[num] = size
            num += 1
    while shift > 0 and found[:num].min() != found[:num].max():
        step = min(DIGIT, shift)
        shift -= step
        last = (np.int64(1) << step) - 1
        histogram[:] = 0
        for i in range(num):
            histogram[np.int64(found[i] >> shift) & last] += 1
        digit, left = _digit_of(histogram, left)
        kept = 0
        for i in range(num):
            if np.int64(found[i] >> shift) & last == digit:
                found[kept] = found[i]
                kept += 1
        num = kept
    return found[0], left


@compiled
def _digit_of(histogram: NDArray[np.int64], count: int) -> tuple[int, int]:
    """The digit of the count-th largest, and which of those with this digit it is."""
    digit = histogram.size - 1
    while histogram[digit] < count:
        count -= histogram[digit]
        digit -= 1
    return digit, count
