"""The robust aggregates again, slow and readable: what the compiled loops are tested against, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.distances import BLOCK, LANES
from asyncfed.kernels.order_statistics import TIE

Array = NDArray[Any]


def trimmed_mean(vectors: Array, trimmed: int) -> Array:
    """The twin of `order_statistics.trimmed_mean`: the rest is added from the smallest to the largest."""
    ordered = np.sort(vectors + vectors.dtype.type(0.0), axis=0)[trimmed : len(vectors) - trimmed]
    total = np.zeros(vectors.shape[1])
    for row in ordered:
        total += row
    return (total / len(ordered)).astype(vectors.dtype)


def weighted_trimmed_mean(vectors: Array, weights: Array, trimmed: int) -> Array:
    """The twin of `order_statistics.weighted_trimmed_mean`: the rest is added in the order of the rows."""
    made = []
    for values in vectors.T:
        order = sorted(range(len(values)), key=lambda i: (values[i], i))
        total = weight = plain = 0.0
        for i in sorted(order[trimmed : len(order) - trimmed]):
            total += float(weights[i]) * float(values[i])
            weight += float(weights[i])
            plain += float(values[i])
        made.append(total / weight if weight > 0.0 else plain / (len(order) - 2 * trimmed))
    return np.array(made).astype(vectors.dtype)


def weighted_median(vectors: Array, weights: Array) -> Array:
    """The twin of `order_statistics.weighted_median`: weight that comes first is added in the order of the rows."""
    made = []
    for values in (vectors + vectors.dtype.type(0.0)).T.astype(np.float64):
        places = range(len(values))
        low, high = -np.inf, np.inf
        for i in places:
            before = 0.0
            for k in places:
                if (values[k], k) < (values[i], i):
                    before += float(weights[k])
            if before < 0.5 - TIE:
                low = max(low, values[i])
            if before + float(weights[i]) > 0.5 + TIE:
                high = min(high, values[i])
        made.append(low if low == high else (low + high) / 2.0)
    return np.array(made).astype(vectors.dtype)


def squared_distances(vectors: Array, point: Array) -> Array:
    """The twin of `distances.squared_distances`."""
    return np.array([_square_of_difference(vector, point) for vector in vectors])


def pairwise_squared_distances(vectors: Array) -> Array:
    """The twin of `distances.pairwise_squared_distances`."""
    return np.array([[_square_of_difference(one, other) for other in vectors] for one in vectors])


def _square_of_difference(one: Array, other: Array) -> float:
    total = 0.0
    squares = (one.astype(np.float64) - other.astype(np.float64)) ** 2
    for begin in range(0, len(squares), BLOCK):
        lanes = np.zeros(LANES)
        for first in range(begin, min(begin + BLOCK, len(squares)), LANES):
            some = squares[first : min(first + LANES, begin + BLOCK)]
            lanes[: len(some)] += some
        total += float(sum(lanes.tolist()))
    return total


def weighted_sum(vectors: Array, weights: Array) -> Array:
    """The twin of `distances.weighted_sum`."""
    total = np.zeros(vectors.shape[1])
    for vector, weight in zip(vectors, weights.tolist(), strict=True):
        if weight != 0.0:
            total += weight * vector.astype(np.float64)
    return total
