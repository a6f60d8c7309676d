"""The kernel for sparse rows again, slow and readable, with the same bits: what the compiled one is tested against."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.losses import loss_values
from asyncfed.kernels.reference import fma, make_steps, slopes_in_order
from asyncfed.kernels.sparse_loops import LARGEST_SCALE

Array = NDArray[Any]


class Lazy(NamedTuple):
    """A point of a training: the weights are A v + B q, by the names at the head of `kernels/sparse_sgd.py`."""

    v: Array
    scale: float
    shift: float
    bias: Array
    """The bias, shape (1,), or without one shape (0,)."""


def product_in_order(columns: Array, values: Array, weights: Array) -> Array:
    """z·v of a row, in four lanes."""
    lanes = []
    for lane in range(4):
        total: Array = np.zeros((), values.dtype)
        for value, weight in zip(values[lane::4], weights[columns[lane::4]], strict=True):
            total = fma(value, weight, total)
        lanes.append(total)
    summed: Array = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
    return summed


def train_path(
    x: Any,
    y: Array,
    start: Array,
    key: int,
    *,
    epochs: int = 0,
    batch: int,
    lr: float,
    decay: float = 0.0,
    prox: float = 0.0,
    patience: int = 0,
    steps: int = 0,
    correction: Array | None = None,
    loss_code: int,
    l2: float = 0.0,
    penalize_bias: bool = True,
    fit_bias: bool = True,
    hinge_width: float = 1.0,
) -> list[Array]:
    """One client's local training on the rows of a CSR array, every point of it, as in `kernels/sparse_sgd.py`."""
    real, d = x.dtype.type, x.shape[1]
    begin = np.asarray(start, x.dtype)
    shifts = None if correction is None else np.asarray(correction, x.dtype)
    pulled = shifts is not None or l2 != 0 or prox != 0
    pull: Array | None = None
    if prox != 0 or shifts is not None:
        pull = real(prox) * begin[:d] - (0 if shifts is None else shifts[:d])
    rows = [slice(a, b) for a, b in zip(x.indptr[:-1], x.indptr[1:], strict=True)]

    def written_out(v: Array, scale: float, shift: float) -> Array:
        weights: Array = real(scale) * v if pull is None else real(scale) * v + real(shift) * pull
        return weights

    def margin(point: Lazy, row: slice) -> Array:
        total: Array = real(point.scale) * product_in_order(x.indices[row], x.data[row], point.v)
        if pull is not None:
            total = total + real(point.shift) * product_in_order(x.indices[row], x.data[row], pull)
        if fit_bias:
            total = total + point.bias[0]
        return total

    def step(point: Lazy, chosen: list[int], rate: float) -> tuple[float, Lazy]:
        margins = np.array([margin(point, rows[i]) for i in chosen], x.dtype)
        slopes = slopes_in_order(loss_code, margins, y[chosen], hinge_width)
        losses = loss_values(loss_code, margins.astype(np.float64), y[chosen].astype(np.float64), hinge_width)
        shrink = 1.0 - rate * (l2 + prox)
        v, scale, shift = point.v.copy(), point.scale * shrink, shrink * point.shift + rate
        if not 1.0 / LARGEST_SCALE <= abs(scale) <= LARGEST_SCALE:
            v, scale, shift = written_out(v, scale, shift), 1.0, 0.0
        for i, slope in zip(chosen, slopes, strict=True):
            if slope != 0:
                less = -(real(rate / len(chosen) / scale) * slope)
                columns = x.indices[rows[i]]
                v[columns] = fma(less, x.data[rows[i]], v[columns])
        return float(losses.sum()), Lazy(v, scale, shift, next_bias(point.bias, slopes, rate))

    def next_bias(bias: Array, slopes: Array, rate: float) -> Array:
        total = np.zeros_like(bias)
        for slope in slopes:
            total = total + slope
        change: Array = real(rate / len(slopes)) * total
        if pulled:
            if penalize_bias:
                change = change + real(rate * l2) * bias
            change = change + real(rate * prox) * (bias - begin[d:])
        if shifts is not None:
            change = change + real(rate) * shifts[d:]
        stepped: Array = bias - change
        return stepped

    how: dict[str, Any] = {"epochs": epochs, "lr": lr, "decay": decay, "patience": patience, "steps": steps}
    first = Lazy(begin[:d].copy(), 1.0, 0.0, begin[d:])
    path = make_steps(step, first, x.shape[0], key, batch=batch, **how)
    return [np.append(written_out(point.v, point.scale, point.shift), point.bias) for point in path]
