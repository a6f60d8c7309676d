"""Local mini-batch SGD on a linear model, compiled: the loop a simulation spends its time in.

The params are p = (w_1 … w_d), then the bias if there is one. In local epoch e = 0, 1, … the client's rows are
reshuffled and read in batches B of `batch` rows (the last may be shorter), each of which makes the step

    p ← p − lr / (e + 1)^decay · ( mean_{i in B} ∇f_i(p) + l2 · p + prox · (p − p_start) )

where the bias takes part in `l2 · p` only if `penalize_bias`. The losses f are those of `kernels/losses.py`.

**The shuffle.** A task's draws are those of `core.random.Stream(key)`. The order starts as 0 … n−1 and is never reset:
each epoch permutes the order of the one before, by Fisher–Yates from i = n−1 down to 1, swapping i with a draw below
i + 1. A 64-bit word gives two draws, its low 32 bits h first, then its high 32 bits: `(h · (i + 1)) >> 32`. An epoch
begins with a fresh word; an unused high half is thrown away. The bias of a draw is below n / 2^32.

**Bytes.** No fast-math: every sum has one written order, so vector width and thread count cannot change a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.losses import HINGE, LEAST_SQUARES, LOGISTIC, MSE
from asyncfed.kernels.threads import run_split

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
def _shuffle(order: Array, word: np.uint64) -> np.uint64:
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
def _slopes_in_place(loss: int, margins: Array, y: Array, rows: Array) -> Any:
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
def _train_one(
    x: Array,
    y: Array,
    params: Array,
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
) -> None:
    """Train `params` in place on one client's rows."""
    real = x.dtype.type
    n, d = x.shape
    batch = max(1, min(batch, n))
    weights = params[:d]
    bias = real(0)
    order = np.arange(n).astype(np.uint32)
    slopes = np.empty(batch, x.dtype)
    gradient = np.empty(params.shape[0], x.dtype)
    pulled = l2 != 0.0 or prox != 0.0
    start = params.copy() if pulled else params
    word = key
    for epoch in range(epochs):
        word = _shuffle(order, word)
        step = lr / (epoch + 1.0) ** decay
        shrink = real(step * l2)
        back = real(step * prox)
        for first in range(0, n, batch):
            rows = order[first : min(first + batch, n)]
            if fit_bias:
                bias = params[d]
            _batch_margins(x, rows, weights, bias, slopes)
            slope_sum = _slopes_in_place(loss, slopes, y, rows)
            _batch_gradient(x, rows, slopes, gradient)
            scale = real(step / rows.shape[0])
            if pulled:
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


@compiled
def _train_range(
    x: Array,
    y: Array,
    offsets: Array,
    first: int,
    last: int,
    clients: Array,
    params: Array,
    keys: Array,
    epochs: Array,
    batch: Array,
    lr: Array,
    decay: Array,
    prox: Array,
    loss: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
) -> None:
    for k in range(first, last):
        a, b = offsets[clients[k]], offsets[clients[k] + 1]
        _train_one(
            x[a:b],
            y[a:b],
            params[k],
            keys[k],
            epochs[k],
            batch[k],
            lr[k],
            decay[k],
            prox[k],
            loss,
            l2,
            penalize_bias,
            fit_bias,
        )


@compiled
def _first_impossible(clients: Array, num_clients: int, epochs: Array, batch: Array) -> int:
    """The first task with a client that is not there, or with no batch to read; -1 if there is none."""
    for k in range(clients.shape[0]):
        if clients[k] < 0 or clients[k] >= num_clients or epochs[k] < 0 or batch[k] < 1:
            return k
    return -1


def frozen(array: Array) -> Array:
    """A read-only view, so that a kernel is compiled once and not again for arrays that happen to be read-only."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def check_rows(x: Array, y: Array) -> None:
    """The kernels read rows as they lie in memory; a silent copy of the data could be huge, so none is made."""
    if x.ndim != 2 or x.dtype not in (np.float32, np.float64) or not x.flags.c_contiguous:
        raise DataError(
            f"x has dtype {x.dtype} and shape {x.shape}; a kernel needs C-contiguous rows (N, d) of float32 "
            "or float64. Convert it with np.ascontiguousarray(x, dtype=np.float64)."
        )
    if y.shape != x.shape[:1] or y.dtype != x.dtype or not y.flags.c_contiguous:
        raise DataError(
            f"y has dtype {y.dtype} and shape {y.shape}; it needs x's dtype {x.dtype} and one number for each of "
            f"x's {x.shape[0]} rows."
        )


def train_many(
    x: Array,
    y: Array,
    offsets: Array,
    clients: Array,
    start: Array,
    keys: Array,
    epochs: Array,
    batch: Array,
    lr: Array,
    decay: Array,
    prox: Array,
    loss_code: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    threads: int = 1,
) -> Array:
    """Run k independent trainings, task i on client `clients[i]` from `start[i]`; return the k trained params.

    `x` (N, d), `y` (N,) and `offsets` (C + 1,) hold all clients' rows one client after another. `clients`, `epochs` and
    `batch` are int64, `keys` uint64, `lr`, `decay` and `prox` float64, all of length k. The result does not depend on
    `threads` in any bit.
    """
    check_rows(x, y)
    out = np.array(start, dtype=x.dtype, order="C")
    if out.shape != (len(clients), x.shape[1] + fit_bias):
        raise DataError(
            f"start has shape {out.shape}; {len(clients)} tasks of {x.shape[1]} features "
            f"{'and a bias' if fit_bias else 'without a bias'} need {(len(clients), x.shape[1] + fit_bias)}."
        )
    for name, column in (
        ("keys", keys),
        ("epochs", epochs),
        ("batch", batch),
        ("lr", lr),
        ("decay", decay),
        ("prox", prox),
    ):
        if column.shape != clients.shape:
            raise DataError(f"{name} has shape {column.shape}; there are {len(clients)} tasks, one value each.")
    bad = _first_impossible(clients, len(offsets) - 1, epochs, batch)
    if bad >= 0:
        raise ConfigError(
            f"task {bad} asks client {clients[bad]} for {epochs[bad]} epochs in batches of {batch[bad]}; clients are "
            f"0 … {len(offsets) - 2}, epochs at least 0 and a batch at least 1."
        )
    rows, targets, bounds = frozen(x), frozen(y), frozen(offsets)

    def run(first: int, last: int) -> None:
        _train_range(
            rows,
            targets,
            bounds,
            first,
            last,
            clients,
            out,
            keys,
            epochs,
            batch,
            lr,
            decay,
            prox,
            loss_code,
            float(l2),
            bool(penalize_bias),
            bool(fit_bias),
        )

    if threads == 1:
        run(0, len(clients))
    else:
        run_split(run, epochs * (offsets[clients + 1] - offsets[clients]) * x.shape[1] * 2, threads)
    return out
