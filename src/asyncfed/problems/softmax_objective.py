"""The objective of a softmax model over all clients, its gradient and its Hessian, read in chunks of rows.

F(p) = Σ_c a_c (1/n_c) Σ_{i in c} f(m_i, y_i) + ½ Σ_j penalty_j p_j²,  f(m, y) = log Σ_k exp(m_k) − m_y

with margins m_ik = z_i·w_k + b_k and client weights a_c = 1/C. Everything is summed in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.softmax_losses import class_probabilities, softmax_slopes, softmax_values
from asyncfed.problems.objective import row_weights

Array = NDArray[Any]
_CHUNK_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class SoftmaxObjective:
    """F for given data; `penalty` (K · p,) is the L2 weight of each param, p the columns of `x`, or one more: the bias.

    `x` is (n, d), `y` (n,) holds classes 0 … K−1. `client_weights` (C,) are the a_c: not negative, summing to 1.
    """

    x: Array
    y: Array
    offsets: Array
    num_classes: int
    penalty: Array
    client_weights: Array | None = None

    def value_and_gradient(self, params: Array) -> tuple[float, Array]:
        """F(p) and ∇F(p)."""
        value = 0.5 * float(self.penalty @ params**2)
        gradient = (self.penalty * params).reshape(self.num_classes, -1)
        model = params.reshape(self.num_classes, -1)
        for z, labels, weights in self._chunks():
            margins = z @ model.T
            value += float(weights @ softmax_values(margins, labels))
            gradient += (weights[:, None] * softmax_slopes(margins, labels)).T @ z
        return value, gradient.ravel()

    def hessian(self, params: Array) -> Array:
        """∇²F(p), shape (K · p, K · p)."""
        classes, model = self.num_classes, params.reshape(self.num_classes, -1)
        p = model.shape[1]
        total = np.zeros((classes, p, classes, p))
        for z, _, weights in self._chunks():
            probabilities = class_probabilities(z @ model.T)
            for k in range(classes):
                for other in range(k, classes):
                    curvature = probabilities[:, k] * ((k == other) - probabilities[:, other])
                    total[k, :, other] += z.T @ (z * (weights * curvature)[:, None])
        for k in range(classes):
            for other in range(k):
                total[k, :, other] = total[other, :, k].T
        whole: Array = total.reshape(classes * p, classes * p) + np.diag(self.penalty)
        return whole

    def hessian_product(self, params: Array) -> Callable[[Array], Array]:
        """v ↦ ∇²F(p) v, two passes over the rows each time and no (p, p) array at any time."""
        model = params.reshape(self.num_classes, -1)
        known = np.concatenate([class_probabilities(z @ model.T) for z, _, _ in self._chunks()])

        def product(vector: Array) -> Array:
            total = (self.penalty * vector).reshape(self.num_classes, -1)
            directions, first = vector.reshape(self.num_classes, -1), 0
            for z, _, weights in self._chunks():
                probabilities = known[first : first + len(z)]
                first += len(z)
                pull = probabilities * (z @ directions.T)
                pull -= probabilities * pull.sum(axis=1, keepdims=True)
                total += (weights[:, None] * pull).T @ z
            return total.ravel()

        return product

    def _chunks(self) -> Iterator[tuple[Array, NDArray[np.int64], Array]]:
        """(rows with the bias's column of ones, classes, row weights), a few thousand rows at a time."""
        width = len(self.penalty) // self.num_classes
        rows_at_once = max(1, _CHUNK_CELLS // max(width, self.num_classes))
        for first in range(0, len(self.y), rows_at_once):
            last = min(first + rows_at_once, len(self.y))
            z = np.ones((last - first, width))
            z[:, : self.x.shape[1]] = self.x[first:last]
            weights = row_weights(self.offsets, self.client_weights, first, last)
            yield z, self.y[first:last].astype(np.int64), weights
