"""Sums over feature columns, the same to the bit on every machine, in memory no larger than one column."""

from __future__ import annotations

import numpy as np

ROWS_AT_ONCE = 1 << 14


def weighted_columns(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """`x @ weights` in the dtype of x, added column after column.

    A matrix product may order its additions by the number of threads and the processor; data must not.

    >>> weighted_columns(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 1.0]))
    array([12., 34.])
    """
    total = np.zeros(len(x), x.dtype)
    factors = np.asarray(weights, x.dtype)
    for start in range(0, len(x), ROWS_AT_ONCE):
        block = x[start : start + ROWS_AT_ONCE]
        for column, factor in enumerate(factors):
            total[start : start + ROWS_AT_ONCE] += block[:, column] * factor
    return total


def column_moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every column, in float64.

    >>> column_moments(np.array([[1.0, 5.0], [3.0, 5.0]]))
    (array([2., 5.]), array([1., 0.]))
    """
    means, spreads = np.empty(x.shape[1]), np.empty(x.shape[1])
    for index in range(x.shape[1]):
        column = x[:, index].astype(np.float64)
        means[index] = column.mean()
        # The spread of equal values is exactly 0, which the rounding of their mean can hide.
        spreads[index] = column.std() if np.ptp(column) > 0 else 0.0
    return means, spreads
