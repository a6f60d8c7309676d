"""The objective of a linear model over all clients, its gradient and its Hessian, read in chunks of rows.

F(p) = Σ_c a_c (1/n_c) Σ_{i in c} f(z_i·w + b, y_i) + ½ Σ_j penalty_j p_j²

with client weights a_c = 1/C unless others are given. A row of client c thus weighs a_c / n_c. Everything is summed in
double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.losses import loss_curvatures, loss_slopes, loss_values

Array = NDArray[Any]
_CHUNK_CELLS = 1 << 21
_LONG = 1 << 22
_NARROW = 128
_SINGLE_THREAD = 9_000, 262_144
"""Rows times params² beyond which data are long, params up to which they are narrow. Long and narrow data are read in
small chunks, of so many cells and so many products of cells that a matrix library does not share them out to threads:
waiting for each other, these took up to 30 times as long as one."""


def is_sparse(rows: Any) -> bool:
    """Whether rows are a SciPy sparse array, found out without loading SciPy."""
    return hasattr(rows, "tocsr")


def with_bias_column(rows: Any, columns: int) -> Any:
    """Sparse rows with as many columns of ones behind them, 0 or 1, as CSR in double precision."""
    from scipy import sparse  # when first needed: it takes a while to load

    ones: Any = np.ones((rows.shape[0], columns))
    return sparse.hstack([sparse.csr_array(rows), ones], format="csr", dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Objective:
    """F for given data; `penalty` (p,) is the L2 weight of each param and its length says whether there is a bias.

    `x` (n, d) is an array or a SciPy sparse CSR array, which stays sparse. `client_weights` (C,) are the a_c: not
    negative, summing to 1. `hinge_width` is the Huber hinge's.
    """

    x: Any
    y: Array
    offsets: Array
    loss_code: int
    penalty: Array
    client_weights: Array | None = None
    hinge_width: float = 1.0

    def value_and_gradient(self, params: Array) -> tuple[float, Array]:
        """F(p) and ∇F(p)."""
        value = 0.5 * float(self.penalty @ params**2)
        gradient = self.penalty * params
        for z, y, weights in self._chunks():
            margins = z @ params
            value += float(weights @ loss_values(self.loss_code, margins, y, self.hinge_width))
            gradient += (weights * loss_slopes(self.loss_code, margins, y, self.hinge_width)) @ z
        return value, gradient

    def hessian(self, params: Array) -> Array:
        """∇²F(p), shape (p, p)."""
        total = np.diag(self.penalty)
        for z, y, weights in self._chunks():
            curvatures = (weights * loss_curvatures(self.loss_code, z @ params, y, self.hinge_width))[:, None]
            if is_sparse(z):
                total += (z.T @ z.multiply(curvatures)).toarray()
            else:
                total += z.T @ (z * curvatures)
        return total

    def hessian_product(self, params: Array) -> Callable[[Array], Array]:
        """v ↦ ∇²F(p) v, two passes over the rows each time and no (p, p) array at any time."""
        return self.curvature_product(
            np.concatenate(
                [loss_curvatures(self.loss_code, z @ params, y, self.hinge_width) for z, y, _ in self._chunks()]
            )
        )

    def curvature_product(self, curvatures: Array) -> Callable[[Array], Array]:
        """v ↦ (Σ_i a_c/n_c · curvature_i · z_i z_iᵀ + diag(penalty)) v for any curvature of each row, shape (n,)."""
        weights = curvatures * self._row_weights(0, len(self.y))
        d = self.x.shape[1]
        if is_sparse(self.x):
            z = self._sparse_rows
            return lambda vector: self.penalty * vector + (weights * (z @ vector)) @ z

        def product(vector: Array) -> Array:
            total = self.penalty * vector
            for first, last in self._bounds():
                rows = self.x[first:last].astype(np.float64, copy=False)
                pull = weights[first:last] * (rows @ vector[:d] + vector[d:].sum())
                total[:d] += rows.T @ pull
                total[d:] += pull.sum()
            return total

        return product

    def _chunks(self) -> Iterator[tuple[Any, Array, Array]]:
        """(rows with the bias's column of ones, targets, row weights), a few thousand rows at a time."""
        num_params = len(self.penalty)
        for first, last in self._bounds():
            if is_sparse(self.x):
                z = self._sparse_rows
            else:
                z = np.ones((last - first, num_params))
                z[:, : self.x.shape[1]] = self.x[first:last]
            yield z, self.y[first:last].astype(np.float64), self._row_weights(first, last)

    @cached_property
    def _sparse_rows(self) -> Any:
        """All sparse rows with the bias's column of ones, made once: a minimum is found in thousands of passes."""
        return with_bias_column(self.x, len(self.penalty) - self.x.shape[1])

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """The first row and the one after the last of each chunk. Sparse rows are few cells: they are read at once."""
        count = len(self.y)
        width = len(self.penalty)
        rows_at_once = count if is_sparse(self.x) else max(1, _CHUNK_CELLS // width)
        if width <= _NARROW and count * width**2 > _LONG and not is_sparse(self.x):
            rows_at_once = min(_SINGLE_THREAD[0] // width, _SINGLE_THREAD[1] // width**2)
        for first in range(0, count, rows_at_once):
            yield first, min(first + rows_at_once, count)

    def _row_weights(self, first: int, last: int) -> Array:
        return row_weights(self.offsets, self.client_weights, first, last)


def row_weights(offsets: Array, client_weights: Array | None, first: int, last: int) -> Array:
    """a_c / n_c of rows `first` up to `last`, c being each row's client and a_c = 1/C if no weights are given."""
    sizes = np.diff(offsets)
    low = int(np.searchsorted(offsets, first, side="right")) - 1
    high = int(np.searchsorted(offsets, last, side="left"))
    counts = np.diff(np.clip(offsets[low : high + 1], first, last))
    if client_weights is None:
        weights = 1.0 / (len(sizes) * sizes[low:high])
    else:
        weights = np.asarray(client_weights, dtype=np.float64)[low:high] / sizes[low:high]
    return np.repeat(weights, counts)
