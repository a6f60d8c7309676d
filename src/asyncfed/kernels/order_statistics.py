"""Order statistics of each coordinate over a few vectors: the median, the trimmed mean, and their weighted forms.

The vectors are read once, block by block, each block small enough for the cache. Equal weights: a block is sorted by a
fixed sequence of comparisons (Batcher's merge exchange), each of them made for all coordinates of the block at once, so
that the processor's vector unit does it. Unequal weights: for each pair of vectors, what comes first counts towards
what the other has before it; nothing is moved. Coordinates do not depend on each other: nothing depends on the number
of threads. -0.0 is read as 0.0, so that nothing depends on the order of the vectors either.

The slow twin is `kernels/aggregation_reference.py`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.threads import run_split

Array = NDArray[Any]

CACHED = 4096
"""Numbers of all vectors together in a block."""

TIE = 1e-12
"""Within this of 1/2, a share of the weight counts as exactly 1/2: shares are rounded."""


def trimmed_mean(vectors: Array, trimmed: int, threads: int) -> Array:
    """The mean of each coordinate without its `trimmed` smallest and largest values; (count - 1) // 2 is the median."""
    count, size = vectors.shape
    pairs = comparisons(count, trimmed)
    out = np.empty(size, vectors.dtype)
    width = block_width(count)

    def run(first: int, last: int) -> None:
        trimmed_mean_blocks(vectors, pairs, trimmed, width, first, last, out)

    run_split(run, np.full(-(-size // width), width * (count + len(pairs))), threads)
    return out


def weighted_trimmed_mean(vectors: Array, weights: Array, trimmed: int, threads: int) -> Array:
    """The weighted mean of each coordinate without its `trimmed` smallest and largest; of equal ones, earlier rows are
    the smaller. Where all that is left has no weight, it is the plain mean of that."""
    return _by_pairs(weighted_trimmed_mean_blocks, vectors, weights, trimmed, threads)


def weighted_median(vectors: Array, weights: Array, threads: int) -> Array:
    """The first value of each coordinate at which the cumulative weight exceeds 1/2; if it is 1/2 exactly at the one
    before, the mean of the two. The weights sum to 1."""
    return _by_pairs(weighted_median_blocks, vectors, weights, 0, threads)


def _by_pairs(blocks: Any, vectors: Array, weights: Array, trimmed: int, threads: int) -> Array:
    count, size = vectors.shape
    out = np.empty(size, vectors.dtype)
    width = block_width(2 * count)

    def run(first: int, last: int) -> None:
        blocks(vectors, weights, trimmed, width, first, last, out)

    run_split(run, np.full(-(-size // width), width * count * (count + 1) // 2), threads)
    return out


def block_width(rows: int) -> int:
    """How many coordinates of so many rows make a block."""
    return max(64, CACHED // rows // 64 * 64)


@cache
def comparisons(count: int, trimmed: int) -> Array:
    """Pairs of places, (m, 2): to compare them in this order, the smaller first, sorts `count` values.

    Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2 M), less the comparisons that only decide about places
    below `trimmed` or from the end.

    >>> comparisons(3, 0).tolist()
    [[0, 2], [0, 1], [1, 2]]
    """
    pairs: list[tuple[int, int]] = []
    top = 1 << max(0, (count - 1).bit_length() - 1)
    step = top
    while step > 0:
        reach, rest, distance = top, 0, step
        while True:
            pairs += [(i, i + distance) for i in range(count - distance) if i & step == rest]
            if reach == step:
                break
            distance, reach, rest = reach - step, reach // 2, step
        step //= 2
    wanted, kept = set(range(trimmed, count - trimmed)), []
    for low, high in reversed(pairs):
        if low in wanted or high in wanted:
            wanted |= {low, high}
            kept.append((low, high))
    return np.array(kept[::-1], np.int64).reshape(-1, 2)


@compiled
def trimmed_mean_blocks(
    vectors: Array, pairs: Array, trimmed: int, width: int, first: int, last: int, out: Array
) -> None:
    """Blocks [first, last) of `trimmed_mean`."""
    count, size = vectors.shape
    block = np.empty((count, width), vectors.dtype)
    total = np.empty(width, np.float64)
    for number in range(first, last):
        begin = number * width
        here = min(width, size - begin)
        for i in range(count):
            row, source = block[i], vectors[i, begin : begin + here]
            for j in range(here):
                row[j] = source[j] + 0.0
        for pair in range(len(pairs)):
            low, high = block[pairs[pair, 0]], block[pairs[pair, 1]]
            for j in range(here):
                a, b = low[j], high[j]
                low[j] = a if a < b else b
                high[j] = b if a < b else a
        total[:] = 0.0
        for i in range(trimmed, count - trimmed):
            row = block[i]
            for j in range(here):
                total[j] += row[j]
        for j in range(here):
            out[begin + j] = total[j] / (count - 2 * trimmed)


@compiled
def weighted_trimmed_mean_blocks(
    vectors: Array, weights: Array, trimmed: int, width: int, first: int, last: int, out: Array
) -> None:
    """Blocks [first, last) of `weighted_trimmed_mean`."""
    count, size = vectors.shape
    block = np.empty((count, width), vectors.dtype)
    before = np.empty((count, width), np.float64)  # how many values come first
    least, most = float(trimmed), float(count - trimmed)
    total, weight, plain = np.empty(width, np.float64), np.empty(width, np.float64), np.empty(width, np.float64)
    for number in range(first, last):
        begin = number * width
        here = min(width, size - begin)
        for i in range(count):
            row, source = block[i], vectors[i, begin : begin + here]
            for j in range(here):
                row[j] = source[j] + 0.0
        before[:] = 0.0
        for i in range(count):
            one, before_one = block[i], before[i]
            for k in range(i + 1, count):
                other, before_other = block[k], before[k]
                for j in range(here):
                    is_first = one[j] <= other[j]
                    before_other[j] += 1.0 if is_first else 0.0
                    before_one[j] += 0.0 if is_first else 1.0
        total[:] = 0.0
        weight[:] = 0.0
        plain[:] = 0.0
        for i in range(count):
            row, rank, own = block[i], before[i], weights[i]
            for j in range(here):
                value = np.float64(row[j])
                stays = (rank[j] >= least) & (rank[j] < most)
                total[j] += own * value if stays else 0.0
                weight[j] += own if stays else 0.0
                plain[j] += value if stays else 0.0
        for j in range(here):
            if weight[j] > 0.0:
                out[begin + j] = total[j] / weight[j]
            else:
                out[begin + j] = plain[j] / (count - 2 * trimmed)


@compiled
def weighted_median_blocks(
    vectors: Array, weights: Array, trimmed: int, width: int, first: int, last: int, out: Array
) -> None:
    """Blocks [first, last) of `weighted_median`; nothing is trimmed."""
    count, size = vectors.shape
    block = np.empty((count, width), vectors.dtype)
    before = np.empty((count, width), np.float64)  # how much weight comes first
    low, high = np.empty(width, np.float64), np.empty(width, np.float64)
    for number in range(first, last):
        begin = number * width
        here = min(width, size - begin)
        for i in range(count):
            row, source = block[i], vectors[i, begin : begin + here]
            for j in range(here):
                row[j] = source[j] + 0.0
        before[:] = 0.0
        for i in range(count):
            one, before_one, weight = block[i], before[i], weights[i]
            for k in range(i + 1, count):
                other, before_other, other_weight = block[k], before[k], weights[k]
                for j in range(here):
                    is_first = one[j] <= other[j]
                    before_other[j] += weight if is_first else 0.0
                    before_one[j] += 0.0 if is_first else other_weight
        low[:] = -np.inf
        high[:] = np.inf
        for i in range(count):
            row, rank, weight = block[i], before[i], weights[i]
            for j in range(here):
                from_below = row[j] if rank[j] < 0.5 - TIE else -np.inf
                from_above = row[j] if rank[j] + weight > 0.5 + TIE else np.inf
                low[j] = from_below if from_below > low[j] else low[j]
                high[j] = from_above if from_above < high[j] else high[j]
        for j in range(here):
            out[begin + j] = low[j] if low[j] == high[j] else (low[j] + high[j]) / 2.0
