"""The compiled loops of `kernels/softmax.py`. Rows are shuffled as in `kernels/sgd_loops.py`.

The params of one task lie as K rows of p = d numbers, or of d + 1 with the class's bias behind them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.sgd_loops import add_gap, shuffle

Array = NDArray[Any]


# Four classes at a time give the processor four independent chains of additions.
@compiled
def row_margins(row: Array, weights: Array, fit_bias: bool, margins: Array) -> None:
    """m_k = z·w_k + b_k of one row for every class; `weights` is (K, p)."""
    classes = weights.shape[0]
    d = row.shape[0]
    zero = row.dtype.type(0)
    k = 0
    while k + 4 <= classes:
        m0 = m1 = m2 = m3 = zero
        if fit_bias:
            m0, m1, m2, m3 = weights[k, d], weights[k + 1, d], weights[k + 2, d], weights[k + 3, d]
        for j in range(d):
            z = row[j]
            m0 += weights[k, j] * z
            m1 += weights[k + 1, j] * z
            m2 += weights[k + 2, j] * z
            m3 += weights[k + 3, j] * z
        margins[k], margins[k + 1], margins[k + 2], margins[k + 3] = m0, m1, m2, m3
        k += 4
    while k < classes:
        m0 = weights[k, d] if fit_bias else zero
        for j in range(d):
            m0 += weights[k, j] * row[j]
        margins[k] = m0
        k += 1


@compiled
def _batch_gradient(x: Array, rows: Array, slopes: Array, gradient: Array) -> None:
    """The sum over the batch of slope · z, for the weights."""
    d = x.shape[1]
    size = rows.shape[0]
    for j in range(d):
        gradient[j] = x.dtype.type(0)
    i = 0
    while i + 4 <= size:
        r0, r1, r2, r3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        s0, s1, s2, s3 = slopes[i], slopes[i + 1], slopes[i + 2], slopes[i + 3]
        for j in range(d):
            gradient[j] += (s0 * x[r0, j] + s1 * x[r1, j]) + (s2 * x[r2, j] + s3 * x[r3, j])
        i += 4
    while i < size:
        row, slope = rows[i], slopes[i]
        for j in range(d):
            gradient[j] += slope * x[row, j]
        i += 1


@compiled
def row_loss(margins: Array, label: int) -> float:
    """log Σ_k exp(m_k) − m_label, in double precision whatever the data's."""
    highest = np.float64(margins[0])
    for k in range(1, margins.shape[0]):
        # Written so that a NaN margin, after a divergence, gives a NaN loss and not a good one.
        highest = highest if highest >= margins[k] else np.float64(margins[k])
    total = 0.0
    for k in range(margins.shape[0]):
        total += np.exp(np.float64(margins[k]) - highest)
    return float(np.log(total) + (highest - np.float64(margins[label])))


@compiled
def _slopes_in_place(margins: Array, label: int) -> None:
    """Replace m_k by ∂f/∂m_k: the class's probability, less one for the right class."""
    highest = margins[0]
    for k in range(1, margins.shape[0]):
        highest = max(highest, margins[k])
    total = margins.dtype.type(0)
    for k in range(margins.shape[0]):
        margins[k] = np.exp(margins[k] - highest)
        total += margins[k]
    for k in range(margins.shape[0]):
        margins[k] /= total
    margins[label] -= margins.dtype.type(1)


@compiled
def _train_one(
    x: Array,
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
    classes: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    patience: int,
    steps: int,
) -> int:
    """Train `params` in place on one client's rows; answers with the number of steps made. As in `sgd_loops.py`."""
    real = x.dtype.type
    n, d = x.shape
    batch = max(1, min(batch, n))
    width = d + 1 if fit_bias else d
    weights = params.reshape((classes, width))
    order = np.arange(n).astype(np.uint32)
    margins = np.empty(classes, x.dtype)
    slopes = np.empty((classes, batch), x.dtype)
    gradient = np.empty((classes, width), x.dtype)
    corrected = correction.shape[0] > 0
    followed = path.shape[0] > 0
    start = params.copy()
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
        word = shuffle(order, word)
        step = lr / (epoch + 1.0) ** decay
        whole = real(step)
        shrink = real(step * l2)
        back = real(step * prox)
        for first in range(0, end, batch):
            if followed:
                add_gap(params, start, path)
            rows = order[first : min(first + batch, n)]
            size = rows.shape[0]
            for i in range(size):
                label = int(y[rows[i]])
                row_margins(x[rows[i]], weights, fit_bias, margins)
                if patience > 0:
                    seen += row_loss(margins, label)
                _slopes_in_place(margins, label)
                for k in range(classes):
                    slopes[k, i] = margins[k]
            scale = real(step / size)
            for k in range(classes):
                _batch_gradient(x, rows, slopes[k], gradient[k])
                if fit_bias:
                    total = real(0)
                    for i in range(size):
                        total += slopes[k, i]
                    gradient[k, d] = total
                for j in range(width):
                    place = k * width + j
                    p = params[place]
                    pull = back * (p - start[place])
                    if j < d or penalize_bias:
                        pull += shrink * p
                    if corrected:
                        pull += whole * correction[place]
                    params[place] = p - (scale * gradient[k, j] + pull)
        done += (end + batch - 1) // batch
        if patience > 0:
            without = 0 if seen < lowest else without + 1
            lowest = min(lowest, seen)
            if without >= patience:
                break
    return done


@compiled
def train_and_follow_range(
    x: Array,
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
    classes: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
) -> int:
    """Train tasks `first` to `last`, each in place in its row of `params`; all else as in `sgd_loops.py`."""
    for k in range(first, last):
        if clients[k] < 0 or clients[k] >= offsets.shape[0] - 1 or not work[k, 0] >= 0.0 or not work[k, 1] >= 1.0:
            return k
    for k in range(first, last):
        a, b = offsets[clients[k]], offsets[clients[k] + 1]
        done = _train_one(
            x[a:b],
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
            classes,
            l2,
            penalize_bias,
            fit_bias,
            int(work[k, 5]) if work.shape[1] > 5 else 0,
            int(work[k, 6]) if work.shape[1] > 6 else 0,
        )
        if steps_done.shape[0] > 0:
            steps_done[k] = done
    return -1


@compiled
def losses_range(
    x: Array,
    y: Array,
    offsets: Array,
    first: int,
    last: int,
    params: Array,
    classes: int,
    fit_bias: bool,
    sums: Array,
    correct: Array,
) -> None:
    """Of clients `first` to `last`: the sum of their rows' losses and the number of right answers."""
    d = x.shape[1]
    weights = params.reshape((classes, d + 1 if fit_bias else d))
    margins = np.empty(classes, x.dtype)
    for client in range(first, last):
        total = 0.0
        right = 0
        for i in range(offsets[client], offsets[client + 1]):
            label = int(y[i])
            row_margins(x[i], weights, fit_bias, margins)
            total += row_loss(margins, label)
            ahead = True
            for k in range(classes):
                if k != label and not margins[label] > margins[k]:
                    ahead = False
            right += 1 if ahead else 0
        sums[client] = total
        correct[client] = right
