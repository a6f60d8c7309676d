"""The objective of a linear model over all clients, its gradient and its Hessian, read in chunks of rows.

F(p) = (1/C) Σ_c (1/n_c) Σ_{i in c} f(z_i·w + b, y_i) + ½ Σ_j penalty_j p_j²

A row of client c thus weighs 1 / (C n_c). Everything is summed in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.losses import loss_curvatures, loss_slopes, loss_values

Array = NDArray[Any]
_CHUNK_CELLS = 1 << 21


@dataclass(frozen=True)
class Objective:
    """F for given data; `penalty` (p,) is the L2 weight of each param and its length says whether there is a bias."""

    x: Array
    y: Array
    offsets: Array
    loss_code: int
    penalty: Array

    def _chunks(self) -> Iterator[tuple[Array, Array, Array]]:
        """(rows with the bias's column of ones, targets, row weights), a few thousand rows at a time."""
        sizes = np.diff(self.offsets)
        num_params = len(self.penalty)
        rows_at_once = max(1, _CHUNK_CELLS // num_params)
        for first in range(0, len(self.y), rows_at_once):
            last = min(first + rows_at_once, len(self.y))
            z = np.ones((last - first, num_params))
            z[:, : self.x.shape[1]] = self.x[first:last]
            owner = np.searchsorted(self.offsets, np.arange(first, last), side="right") - 1
            yield z, self.y[first:last].astype(np.float64), 1.0 / (len(sizes) * sizes[owner])

    def value_and_gradient(self, params: Array) -> tuple[float, Array]:
        """F(p) and ∇F(p)."""
        value = 0.5 * float(self.penalty @ params**2)
        gradient = self.penalty * params
        for z, y, weights in self._chunks():
            margins = z @ params
            value += float(weights @ loss_values(self.loss_code, margins, y))
            gradient += (weights * loss_slopes(self.loss_code, margins, y)) @ z
        return value, gradient

    def hessian(self, params: Array) -> Array:
        """∇²F(p), shape (p, p)."""
        total = np.diag(self.penalty)
        for z, y, weights in self._chunks():
            total += z.T @ (z * (weights * loss_curvatures(self.loss_code, z @ params, y))[:, None])
        return total
