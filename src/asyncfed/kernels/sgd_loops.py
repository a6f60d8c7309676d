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

from asyncfed.kernels.batch_step import batch_step, empty_tails, fill_tails
from asyncfed.kernels.client_losses import block_loss
from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.keyed_words import GOLDEN, mix64
from asyncfed.kernels.vector_code import GROUP, VECTOR_BYTES

Array = NDArray[Any]

_LOW_HALF = np.uint64(0xFFFF_FFFF)
_32 = np.uint64(32)


@compiled
def shuffle(order: Array, word: np.uint64) -> np.uint64:
    """Permute `order` in place with the words after `word`; return the last word used."""
    i = order.shape[0] - 1
    while i >= 1:
        word += GOLDEN
        bits = mix64(word)
        j = np.int64(((bits & _LOW_HALF) * np.uint64(i + 1)) >> _32)
        order[i], order[j] = order[j], order[i]
        if i >= 2:
            j = np.int64(((bits >> _32) * np.uint64(i)) >> _32)
            order[i - 1], order[j] = order[j], order[i - 1]
        i -= 2
    return word


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
    order: Array,
    tails: Array,
    weights: Array,
    gradient: Array,
    margins: Array,
) -> int:
    """Train `params` in place on one client's rows; answers with the number of steps made.

    `path` collects the gaps before each step, and `correction` is added to the gradient of each, unless it is empty.
    With `patience` above 0, it ends after so many epochs in a row whose loss was no lower than the lowest before; with
    `steps` above 0, after so many steps, whatever `epochs` is. The last five are room to work in.
    """
    real = x.dtype.type
    n, d = x.shape
    p = params.shape[0]
    batch = max(1, min(batch, n))
    for i in range(n):
        order[i] = i
    fill_tails(x, weights.shape[0] // tails.shape[1], tails)
    weights[:p] = params
    weights[p:] = real(0)
    width = real(hinge_width)
    corrected = correction.shape[0] > 0
    plain = not (corrected or l2 != 0.0 or prox != 0.0)
    followed = path.shape[0] > 0
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
        for first in range(0, end, batch):
            if followed:
                add_gap(weights[:p], params, path)
            size = min(batch, n - first)
            scale = real(step / size)
            batch_step(x, tails, y, order, first, size, weights, gradient, margins, loss, width, scale, plain)
            if patience > 0:
                seen += block_loss(loss, hinge_width, margins, y[order[first : first + size]])
            if not plain:
                shrink = real(step * l2)
                back = real(step * prox)
                for j in range(p):
                    w = weights[j]
                    change = scale * gradient[j]
                    if j < d or penalize_bias:
                        change += shrink * w
                    change += back * (w - params[j])
                    if corrected:
                        change += real(step) * correction[j]
                    weights[j] = w - change
        done += (end + batch - 1) // batch
        if patience > 0:
            without = 0 if seen < lowest else without + 1
            lowest = min(lowest, seen)
            if without >= patience:
                break
    params[:] = weights[:p]
    return done


@compiled
def make_room(x: Array, rows: int, num_params: int, fit_bias: bool) -> tuple[Array, Array, Array, Array, Array]:
    """Room for `_train_one` to work in, for clients of at most so many rows."""
    lanes = VECTOR_BYTES // x.itemsize
    blocks = max(1, (num_params + lanes - 1) // lanes)
    order = np.empty(rows, np.uint32)
    tails = empty_tails(rows, x, fit_bias, blocks)
    weights = np.empty(blocks * lanes, x.dtype)
    gradient = np.empty(blocks * lanes, x.dtype)
    margins = np.empty(rows + GROUP, x.dtype)
    return order, tails, weights, gradient, margins


@compiled
def train_client(
    x: Array,
    y: Array,
    offsets: Array,
    client: int,
    params: Array,
    path: Array,
    correction: Array,
    key: np.uint64,
    work: Array,
    loss: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    hinge_width: float,
    room: tuple[Array, Array, Array, Array, Array],
) -> int:
    """Train `params` in place on this client's rows, as a row of works says; answers with the number of steps made."""
    a, b = offsets[client], offsets[client + 1]
    return _train_one(
        x[a:b],
        y[a:b],
        params,
        path,
        correction,
        key,
        int(work[0]),
        int(work[1]),
        work[2],
        work[3],
        work[4],
        loss,
        l2,
        penalize_bias,
        fit_bias,
        hinge_width,
        int(work[5]) if work.shape[0] > 5 else 0,
        int(work[6]) if work.shape[0] > 6 else 0,
        room[0],
        room[1],
        room[2],
        room[3],
        room[4],
    )


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
    rows = 0
    for k in range(first, last):
        rows = max(rows, offsets[clients[k] + 1] - offsets[clients[k]])
    room = make_room(x, rows, params.shape[1], fit_bias)
    for k in range(first, last):
        done = train_client(
            x,
            y,
            offsets,
            clients[k],
            params[k],
            paths[k if paths.shape[1] > 0 else 0],
            corrections[k if corrections.shape[1] > 0 else 0],
            keys[k],
            work[k],
            loss,
            l2,
            penalize_bias,
            fit_bias,
            hinge_width,
            room,
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
