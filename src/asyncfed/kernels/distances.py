"""Distances between a few vectors, and their weighted sum: what robust aggregates are judged by and made of.

Sums over coordinates are made of blocks of fixed size, each block of `LANES` sums side by side, and added in one
written order: nothing depends on the number of threads. All are in double precision, whatever the vectors are. A square
beyond the largest float is infinite, and so is the distance: farther than all others, and no more is asked of it.

The slow twin is `kernels/aggregation_reference.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.threads import run_split

Array = NDArray[Any]

BLOCK = 2048
"""Coordinates in a block."""

LANES = 16
"""Sums side by side in a block: coordinate j of a block goes to sum j mod LANES."""


def squared_distances(vectors: Array, point: Array, threads: int) -> Array:
    """(k,) `|vectors_i - point|^2`; `point` is of double precision."""
    count, size = vectors.shape
    blocks = -(-size // BLOCK)
    parts = np.empty((blocks, count))

    def run(first: int, last: int) -> None:
        distance_blocks(vectors, point, first, last, parts)

    run_split(run, np.full(blocks, BLOCK * count), threads)
    return _added(parts)


def pairwise_squared_distances(vectors: Array, threads: int) -> Array:
    """(k, k) `|vectors_i - vectors_j|^2`."""
    count, size = vectors.shape
    blocks = -(-size // BLOCK)
    parts = np.empty((blocks, count * count))

    def run(first: int, last: int) -> None:
        pair_blocks(vectors, first, last, parts)

    run_split(run, np.full(blocks, BLOCK * count * count // 2), threads)
    return _added(parts).reshape(count, count)


def weighted_sum(vectors: Array, weights: Array, threads: int) -> Array:
    """(p,) `sum_i weights_i * vectors_i` in double precision, added in the order of the rows; those of no weight are
    left out, however long they are."""
    count, size = vectors.shape
    out = np.empty(size)

    def run(first: int, last: int) -> None:
        sum_blocks(vectors, weights, first, last, out)

    run_split(run, np.full(-(-size // BLOCK), BLOCK * count), threads)
    return out


def _added(parts: Array) -> Array:
    """The sum over blocks, one after another."""
    total = np.zeros(parts.shape[1])
    for part in parts:
        total += part
    return total


@compiled
def distance_blocks(vectors: Array, point: Array, first: int, last: int, parts: Array) -> None:
    """Blocks [first, last) of `squared_distances`."""
    count, size = vectors.shape
    lanes = np.empty(LANES)
    for number in range(first, last):
        begin, end = number * BLOCK, min(size, (number + 1) * BLOCK)
        for i in range(count):
            parts[number, i] = square_of_difference(vectors[i, begin:end], point[begin:end], lanes)


@compiled
def pair_blocks(vectors: Array, first: int, last: int, parts: Array) -> None:
    """Blocks [first, last) of `pairwise_squared_distances`."""
    count, size = vectors.shape
    lanes = np.empty(LANES)
    for number in range(first, last):
        begin, end = number * BLOCK, min(size, (number + 1) * BLOCK)
        for i in range(count):
            parts[number, i * count + i] = 0.0
            for k in range(i + 1, count):
                square = square_of_difference(vectors[i, begin:end], vectors[k, begin:end], lanes)
                parts[number, i * count + k] = square
                parts[number, k * count + i] = square


@compiled
def square_of_difference(one: Array, other: Array, lanes: Array) -> float:
    """`|one - other|^2`, each lane summed by itself; `lanes` is room for them."""
    lanes[:] = 0.0
    whole = one.size // LANES * LANES
    for begin in range(0, whole, LANES):
        a, b = one[begin : begin + LANES], other[begin : begin + LANES]
        for lane in range(LANES):
            difference = np.float64(a[lane]) - np.float64(b[lane])
            lanes[lane] += difference * difference
    for j in range(whole, one.size):
        difference = np.float64(one[j]) - np.float64(other[j])
        lanes[j - whole] += difference * difference
    total = 0.0
    for lane in range(LANES):
        total += lanes[lane]
    return total


@compiled
def sum_blocks(vectors: Array, weights: Array, first: int, last: int, out: Array) -> None:
    """Blocks [first, last) of `weighted_sum`."""
    count, size = vectors.shape
    for number in range(first, last):
        begin, end = number * BLOCK, min(size, (number + 1) * BLOCK)
        total = out[begin:end]
        total[:] = 0.0
        for i in range(count):
            row, weight = vectors[i, begin:end], weights[i]
            if weight != 0.0:
                for j in range(end - begin):
                    total[j] += weight * row[j]
