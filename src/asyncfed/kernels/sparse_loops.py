"""The compiled loops of `kernels/sparse_sgd.py`, whose head says what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.client_losses import block_loss
from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.losses import HINGE, HUBER_HINGE, LEAST_SQUARES, LOGISTIC, MSE
from asyncfed.kernels.sgd_loops import add_gap, shuffle
from asyncfed.kernels.sparse_rows import add_row, row_product

Array = NDArray[Any]

LARGEST_SCALE = 2.0**32
"""Where |A| is above it, or below its inverse, the weights are written out."""


@compiled
def _slope(loss: int, width: Any, m: Any, y: Any, zero: Any, one: Any) -> Any:
    """∂f/∂m of a row, in its precision, that of `zero` and `one`; of a NaN margin what `vector_slopes.py` gives."""
    if loss == LEAST_SQUARES:
        return m - y
    if loss == MSE:
        return (m - y) + (m - y)
    if loss == LOGISTIC:
        return -y / (one + np.exp(y * m))
    shortfall = one - y * m
    if loss == HINGE:
        return zero if y * m >= one else -y
    if shortfall <= zero:
        return zero
    if loss == HUBER_HINGE:
        return -y if shortfall >= width else -y * (shortfall / width)
    return -y * shortfall


@compiled
def _write_out(weights: Array, scale: float, shift: float, pull: Array, result: Array) -> None:
    """result ← A v + B q; without q, A v."""
    real = weights.dtype.type
    if pull.shape[0] > 0:
        for j in range(weights.shape[0]):
            result[j] = real(scale) * weights[j] + real(shift) * pull[j]
    else:
        for j in range(weights.shape[0]):
            result[j] = real(scale) * weights[j]


@compiled
def _train_one(
    begins: Array,
    columns: Array,
    values: Array,
    y: Array,
    params: Array,
    path: Array,
    correction: Array,
    key: np.uint64,
    epochs: int,
    batch: int,
    lr: float,
    decay: float,
    prox: float,
    loss: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    hinge_width: float,
    patience: int,
    steps: int,
    order: Array,
    weights: Array,
    all_pulls: Array,
    row_pulls: Array,
    margins: Array,
    slopes: Array,
    current: Array,
) -> int:
    """Train `params` in place on one client's rows; answers with the number of steps made.

    The arguments are those of the dense kernel, `kernels/sgd_loops.py`, but for the rows: row i has the non-zeros
    `begins[i]` up to `begins[i + 1]` of `columns` and `values`. The last seven are room to work in.
    """
    real = values.dtype.type
    n, d = y.shape[0], weights.shape[0]
    batch = max(1, min(batch, n))
    for i in range(n):
        order[i] = i
    weights[:] = params[:d]
    bias = params[d] if fit_bias else real(0)
    first_bias = bias
    corrected = correction.shape[0] > 0
    pulled = corrected or l2 != 0.0 or prox != 0.0
    pull = all_pulls[: d if corrected or prox != 0.0 else 0]
    for j in range(pull.shape[0]):
        pull[j] = real(prox) * params[j]
        if corrected:
            pull[j] -= correction[j]
    followed = path.shape[0] > 0
    width = real(hinge_width)
    scale = 1.0
    shift = 0.0
    word = key
    lowest = np.inf
    without = 0
    per_epoch = (n + batch - 1) // batch
    if steps > 0:
        epochs = (steps + per_epoch - 1) // per_epoch if n > 0 else 0
    done = 0
    for epoch in range(epochs):
        end = n
        if steps > 0 and steps - done < per_epoch:
            end = (steps - done) * batch
        seen = 0.0
        word = shuffle(order[:n], word)
        step = lr / (epoch + 1.0) ** decay
        shrink = 1.0 - step * (l2 + prox)
        for first in range(0, end, batch):
            if followed:
                _write_out(weights, scale, shift, pull, current)
                if fit_bias:
                    current[d] = bias
                add_gap(current, params, path)
            size = min(batch, n - first)
            total = real(0)
            for i in range(size):
                row = order[first + i]
                a, b = np.uint64(begins[row]), np.uint64(begins[row + 1])
                margin = real(scale) * row_product(a, b, columns, values, weights)
                if pull.shape[0] > 0:
                    if epoch == 0:  # the pull is the same in all epochs, and the first reads every row
                        row_pulls[row] = row_product(a, b, columns, values, pull)
                    margin += real(shift) * row_pulls[row]
                if fit_bias:
                    margin += bias
                margins[i] = margin
                slopes[i] = _slope(loss, width, margin, y[row], real(0), real(1))
                total += slopes[i]
            if patience > 0:
                seen += block_loss(loss, hinge_width, margins, y[order[first : first + size]])
            scale *= shrink
            shift = shrink * shift + step
            if not 1.0 / LARGEST_SCALE <= abs(scale) <= LARGEST_SCALE:
                _write_out(weights, scale, shift, pull, weights)
                scale = 1.0
                shift = 0.0
            rate = real(step / size / scale)
            for i in range(size):
                if slopes[i] == real(0):
                    continue
                row = order[first + i]
                a, b = np.uint64(begins[row]), np.uint64(begins[row + 1])
                add_row(a, b, columns, values, -(rate * slopes[i]), weights)
            if fit_bias:
                change = real(step / size) * total
                if pulled:
                    if penalize_bias:
                        change += real(step * l2) * bias
                    change += real(step * prox) * (bias - first_bias)
                if corrected:
                    change += real(step) * correction[d]
                bias -= change
        done += (end + batch - 1) // batch
        if patience > 0:
            without = 0 if seen < lowest else without + 1
            lowest = min(lowest, seen)
            if without >= patience:
                break
    _write_out(weights, scale, shift, pull, params)
    if fit_bias:
        params[d] = bias
    return done


@compiled
def train_and_follow_range(
    begins: Array,
    columns: Array,
    values: Array,
    y: Array,
    offsets: Array,
    first: int,
    last: int,
    params: Array,
    paths: Array,
    corrections: Array,
    steps_done: Array,
    clients: Array,
    keys: Array,
    work: Array,
    loss: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    hinge_width: float,
) -> int:
    """Train tasks `first` to `last`, each in place in its row of `params` (k, p). Answers -1.

    `paths`, `corrections`, `steps_done` and the answer are as in `sgd_loops.train_and_follow_range`.
    """
    for k in range(first, last):
        if clients[k] < 0 or clients[k] >= offsets.shape[0] - 1 or not work[k, 0] >= 0.0 or not work[k, 1] >= 1.0:
            return k
    rows = 0
    for k in range(first, last):
        rows = max(rows, offsets[clients[k] + 1] - offsets[clients[k]])
    d = params.shape[1] - (1 if fit_bias else 0)
    kind = values.dtype
    order = np.empty(rows, np.uint32)
    weights, pull = np.empty(d, kind), np.empty(d, kind)
    row_pulls, margins, slopes = np.empty(rows, kind), np.empty(rows, kind), np.empty(rows, kind)
    current = np.empty(params.shape[1] if paths.shape[1] > 0 else 0, kind)
    for k in range(first, last):
        a, b = offsets[clients[k]], offsets[clients[k] + 1]
        done = _train_one(
            begins[a : b + 1],
            columns,
            values,
            y[a:b],
            params[k],
            paths[k if paths.shape[1] > 0 else 0],
            corrections[k if corrections.shape[1] > 0 else 0],
            keys[k],
            int(work[k, 0]),
            int(work[k, 1]),
            work[k, 2],
            work[k, 3],
            work[k, 4],
            loss,
            l2,
            penalize_bias,
            fit_bias,
            hinge_width,
            int(work[k, 5]) if work.shape[1] > 5 else 0,
            int(work[k, 6]) if work.shape[1] > 6 else 0,
            order,
            weights,
            pull,
            row_pulls,
            margins,
            slopes,
            current,
        )
        if steps_done.shape[0] > 0:
            steps_done[k] = done
    return -1
