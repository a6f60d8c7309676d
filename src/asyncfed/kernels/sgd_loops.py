"""The compiled loops of `kernels/sgd.py`: what a simulation spends its time in.

**The shuffle.** A task's draws are those of `core.random.Stream(key)`. The order starts as 0 … n−1 and is never reset:
each epoch permutes the order of the one before, by Fisher–Yates from i = n−1 down to 1, swapping i with a draw below
i + 1. A 64-bit word gives two draws, its low 32 bits h first, then its high 32 bits: `(h · (i + 1)) >> 32`. An epoch
begins with a fresh word; an unused high half is thrown away. The bias of a draw is below n / 2^32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.client_losses import block_loss
from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.losses import HINGE, HUBER_HINGE, LEAST_SQUARES, LOGISTIC, MSE

Array = NDArray[Any]

_GOLDEN = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST_FACTOR = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND_FACTOR = np.uint64(0x94D0_49BB_1331_11EB)
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_27, _30, _31, _32 = (np.uint64(shift) for shift in (27, 30, 31, 32))


@compiled
def _mix64(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> _30)) * _FIRST_FACTOR
    z = (z ^ (z >> _27)) * _SECOND_FACTOR
    return z ^ (z >> _31)


@compiled
def shuffle(order: Array, word: np.uint64) -> np.uint64:
    """Permute `order` in place with the words after `word`; return the last word used."""
    i = order.shape[0] - 1
    while i >= 1:
        word += _GOLDEN
        bits = _mix64(word)
        j = np.int64(((bits & _LOW_HALF) * np.uint64(i + 1)) >> _32)
        order[i], order[j] = order[j], order[i]
        if i >= 2:
            j = np.int64(((bits >> _32) * np.uint64(i)) >> _32)
            order[i - 1], order[j] = order[j], order[i - 1]
        i -= 2
    return word


# Four rows at a time give the processor four independent chains of additions.
@compiled
def _batch_margins(x: Array, rows: Array, weights: Array, bias: Any, margins: Array) -> None:
    d = weights.shape[0]
    size = rows.shape[0]
    i = 0
    while i + 4 <= size:
        r0, r1, r2, r3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        m0 = m1 = m2 = m3 = bias
        for j in range(d):
            w = weights[j]
            m0 += w * x[r0, j]
            m1 += w * x[r1, j]
            m2 += w * x[r2, j]
            m3 += w * x[r3, j]
        margins[i], margins[i + 1], margins[i + 2], margins[i + 3] = m0, m1, m2, m3
        i += 4
    while i < size:
        m0 = bias
        for j in range(d):
            m0 += weights[j] * x[rows[i], j]
        margins[i] = m0
        i += 1


@compiled
def _slopes_in_place(loss: int, hinge_width: float, margins: Array, y: Array, rows: Array) -> Any:
    """Replace each row's margin by ∂f/∂m, and return their sum: the bias's gradient."""
    zero = margins.dtype.type(0)
    one = margins.dtype.type(1)
    size = rows.shape[0]
    if loss == LEAST_SQUARES:
        for i in range(size):
            margins[i] -= y[rows[i]]
    elif loss == MSE:
        for i in range(size):
            difference = margins[i] - y[rows[i]]
            margins[i] = difference + difference
    elif loss == LOGISTIC:
        for i in range(size):
            label = y[rows[i]]
            margins[i] = -label / (one + np.exp(label * margins[i]))
    elif loss == HINGE:
        for i in range(size):
            label = y[rows[i]]
            margins[i] = zero if label * margins[i] >= one else -label
    elif loss == HUBER_HINGE:
        width = margins.dtype.type(hinge_width)
        for i in range(size):
            label = y[rows[i]]
            shortfall = one - label * margins[i]
            if shortfall <= zero:
                margins[i] = zero
            else:
                margins[i] = -label if shortfall >= width else -label * (shortfall / width)
    else:
        for i in range(size):
            label = y[rows[i]]
            shortfall = one - label * margins[i]
            margins[i] = zero if shortfall <= zero else -label * shortfall
    total = zero
    for i in range(size):
        total += margins[i]
    return total


@compiled
def batch_gradient(x: Array, rows: Array, slopes: Array, gradient: Array) -> None:
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
def add_gap(params: Array, start: Array, path: Array) -> None:
    """Add params − start to `path`, the square of its length to the number behind it, and 1 to the last."""
    square = 0.0
    for j in range(params.shape[0]):
        gap = np.float64(params[j]) - np.float64(start[j])
        path[j] += gap
        square += gap * gap
    path[params.shape[0]] += square
    path[params.shape[0] + 1] += 1.0


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
    loss: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    hinge_width: float,
    patience: int,
    steps: int,
) -> int:
    """Train `params` in place on one client's rows; answers with the number of steps made.

    `path` collects the gaps before each step, and `correction` is added to the gradient of each, unless it is empty.
    With `patience` above 0, it ends after so many epochs in a row whose loss was no lower than the lowest before; with
    `steps` above 0, after so many steps, whatever `epochs` is.
    """
    real = x.dtype.type
    n, d = x.shape
    batch = max(1, min(batch, n))
    weights = params[:d]
    bias = real(0)
    order = np.arange(n).astype(np.uint32)
    slopes = np.empty(batch, x.dtype)
    gradient = np.empty(params.shape[0], x.dtype)
    pulled = l2 != 0.0 or prox != 0.0
    corrected = correction.shape[0] > 0
    followed = path.shape[0] > 0
    start = params.copy() if pulled or followed or corrected else params
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
        shrink = real(step * l2)
        back = real(step * prox)
        for first in range(0, end, batch):
            if followed:
                add_gap(params, start, path)
            rows = order[first : min(first + batch, n)]
            if fit_bias:
                bias = params[d]
            _batch_margins(x, rows, weights, bias, slopes)
            if patience > 0:
                seen += block_loss(loss, hinge_width, slopes, y[rows])
            slope_sum = _slopes_in_place(loss, hinge_width, slopes, y, rows)
            batch_gradient(x, rows, slopes, gradient)
            scale = real(step / rows.shape[0])
            if corrected:
                whole = real(step)
                for j in range(d):
                    p = params[j]
                    pull = shrink * p + back * (p - start[j])
                    params[j] = p - (scale * gradient[j] + pull + whole * correction[j])
                if fit_bias:
                    pull = back * (bias - start[d])
                    if penalize_bias:
                        pull += shrink * bias
                    params[d] = bias - (scale * slope_sum + pull + whole * correction[d])
            elif pulled:
                for j in range(d):
                    p = params[j]
                    params[j] = p - (scale * gradient[j] + shrink * p + back * (p - start[j]))
                if fit_bias:
                    pull = back * (bias - start[d])
                    if penalize_bias:
                        pull += shrink * bias
                    params[d] = bias - (scale * slope_sum + pull)
            else:
                for j in range(d):
                    params[j] -= scale * gradient[j]
                if fit_bias:
                    params[d] = bias - scale * slope_sum
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
    loss: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    hinge_width: float,
) -> int:
    """Train tasks `first` to `last`, each in place in its row of `params` (k, p). Answers -1.

    `paths` (k, p + 2) float64, zero at first, gets the two sums of `LocalSgd.path_moments` and the number of steps;
    with shape (1, 0), nothing. `corrections` (k, p) are added to each step's gradient; with shape (1, 0), nothing is.
    `steps_done` (k,) gets the number of steps; with shape (0,), nothing.
    If a task has a client that is not there, or no batch to read, its number is the answer and nothing is trained.
    """
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
            loss,
            l2,
            penalize_bias,
            fit_bias,
            hinge_width,
            int(work[k, 5]) if work.shape[1] > 5 else 0,
            int(work[k, 6]) if work.shape[1] > 6 else 0,
        )
        if steps_done.shape[0] > 0:
            steps_done[k] = done
    return -1


@compiled
def train_range(
    x: Array,
    y: Array,
    offsets: Array,
    first: int,
    last: int,
    params: Array,
    clients: Array,
    keys: Array,
    work: Array,
    loss: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    hinge_width: float,
) -> int:
    """`train_and_follow_range` without paths, corrections and counts: fewer arrays to hand over in a short call."""
    return train_and_follow_range(
        x,
        y,
        offsets,
        first,
        last,
        params,
        np.empty((1, 0), np.float64),
        np.empty((1, 0), x.dtype),
        np.empty(0, np.int64),
        clients,
        keys,
        work,
        loss,
        l2,
        penalize_bias,
        fit_bias,
        hinge_width,
    )
