"""A matrix as a product of two thin ones, by subspace iteration; and that product. All sums have a fixed order, so that
client and server make the same bits of the same factors, whatever linear algebra their machines have.

The slow twin is in `kernels/codec_reference.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled

DEPENDENT = 1e-10
"""A column of which no larger share is left beside the ones before it counts as zero."""


@compiled
def low_rank_factors(
    matrix: NDArray[Any], right: NDArray[np.float64], iterations: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Left and right with left @ right.T near the matrix: left has orthonormal columns, right = matrix.T @ left.

    Args:
        matrix: (m, n), finite; its largest entry is of a size whose square is a float.
        right: (n, r), where to begin: random numbers.
        iterations: how often both are computed, 1 or more.
    """
    rows, columns, rank = matrix.shape[0], matrix.shape[1], right.shape[1]
    left = np.zeros((rows, rank))
    for _ in range(iterations):
        left[:] = 0.0
        for i in range(rows):
            for j in range(columns):
                for c in range(rank):
                    left[i, c] += matrix[i, j] * right[j, c]
        _orthonormalise(left)
        right = np.zeros((columns, rank))
        for i in range(rows):
            for j in range(columns):
                for c in range(rank):
                    right[j, c] += matrix[i, j] * left[i, c]
    return left, right


@compiled
def _orthonormalise(columns: NDArray[np.float64]) -> None:
    """Gram-Schmidt, each column against those before it, twice; a column that depends on them becomes zero."""
    rows, rank = columns.shape
    for c in range(rank):
        before = 0.0
        for i in range(rows):
            before += columns[i, c] * columns[i, c]
        for _ in range(2):
            for b in range(c):
                along = 0.0
                for i in range(rows):
                    along += columns[i, b] * columns[i, c]
                for i in range(rows):
                    columns[i, c] -= along * columns[i, b]
        left = 0.0
        for i in range(rows):
            left += columns[i, c] * columns[i, c]
        scale = 1.0 / np.sqrt(left) if left > DEPENDENT * DEPENDENT * before else 0.0
        for i in range(rows):
            columns[i, c] *= scale


@compiled
def thin_product(left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> None:
    """left @ right.T into `out`, added up in double precision."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for c in range(left.shape[1]):
                total += np.float64(left[i, c]) * np.float64(right[j, c])
            out[i, j] = total
