"""All clients' rows in blocks of whole clients, small enough to compute on at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from asyncfed.problems.objective import is_sparse
from asyncfed.theory.linear_data import LinearData

Array = NDArray[Any]
CELLS_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class Block:
    """The rows of k clients one after another: client `first + j` owns rows `starts[j]` up to `starts[j + 1]`."""

    first: int
    starts: Array
    x: Any
    y: Array
    fit_bias: bool

    @property
    def clients(self) -> slice:
        """Which clients they are."""
        return slice(self.first, self.first + len(self.starts) - 1)

    def margins(self, params: Array) -> Array:
        """z_i·p of each row."""
        d = self.x.shape[1]
        return np.asarray(self.x @ params[:d] + params[d:].sum())

    def squared_norms(self) -> Array:
        """|z_i|² of each row."""
        return squared_norms(self.x) + bool(self.fit_bias)

    def sums(self, values: Array) -> Array:
        """Σ values_i of each client's rows, shape (k,)."""
        return np.add.reduceat(values, self.starts[:-1])

    def weighted_rows(self, values: Array) -> Array:
        """Σ values_i z_i of each client's rows, shape (k, p)."""
        shape = (len(self.starts) - 1, len(values))
        owners = sparse.csr_array((values, np.arange(len(values)), self.starts), shape=shape)
        summed = dense(owners @ self.x)
        return np.column_stack([summed, self.sums(values)]) if self.fit_bias else summed


def blocks(data: LinearData) -> Iterator[Block]:
    """Every client once, in order, in double precision; dense double-precision rows are views, not copies.

    A block holds about two million cells of x (and of the params, where clients have fewer rows than there are params),
    or a single client that is larger.
    """
    room = max(1, CELLS_AT_ONCE // data.num_params)
    filled = np.arange(data.num_clients) + data.offsets[:-1]
    first = 0
    while first < data.num_clients:
        last = max(first + 1, int(np.searchsorted(filled, filled[first] + room)))
        begin, end = int(data.offsets[first]), int(data.offsets[last])
        rows = data.x[begin:end].astype(np.float64, copy=False)
        yield Block(first, data.offsets[first : last + 1] - begin, rows, data.y[begin:end], bool(data.fit_bias))
        first = last


def dense(rows: Any) -> Array:
    """Rows, sparse or not, as an array."""
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)


def squared_norms(x: Any) -> Array:
    """|x_i|² of each row."""
    if is_sparse(x):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", x, x))
