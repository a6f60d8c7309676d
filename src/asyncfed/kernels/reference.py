"""The kernels again, slow and readable, in double precision: what the compiled loops are tested against."""

from __future__ import annotations

from itertools import count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import Stream
from asyncfed.kernels.losses import loss_slopes, loss_values
from asyncfed.kernels.softmax_losses import softmax_slopes, softmax_values

Array = NDArray[Any]


def shuffle(order: list[int], stream: Stream) -> None:
    """Fisher–Yates with two draws from each 64-bit word, as written in `kernels/sgd_loops.py`.

    >>> order = list(range(5)); shuffle(order, Stream(7)); order
    [3, 0, 2, 4, 1]
    """
    halves: list[int] = []
    for i in range(len(order) - 1, 0, -1):
        if not halves:
            word = stream.bits()
            halves = [word & 0xFFFF_FFFF, word >> 32]
        j = (halves.pop(0) * (i + 1)) >> 32
        order[i], order[j] = order[j], order[i]


def with_bias(x: Array, fit_bias: bool) -> Array:
    """The rows in double precision, with a column of ones for the bias."""
    wide = np.asarray(x, dtype=np.float64)
    return np.column_stack([wide, np.ones(len(wide))]) if fit_bias else wide


def train_path(
    x: Array,
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
    loss_code: int = -1,
    num_classes: int = 0,
    l2: float = 0.0,
    penalize_bias: bool = True,
    fit_bias: bool = True,
    hinge_width: float = 1.0,
) -> list[Array]:
    """One client's local training, every point of it: the equation at the head of `kernels/sgd.py`, line by line.

    With `num_classes` above 0 the loss is the softmax of so many margins, as in `kernels/softmax.py`.
    """
    rows = with_bias(x, fit_bias)
    targets = np.asarray(y, dtype=np.int64 if num_classes else np.float64)
    begin = np.asarray(start, dtype=np.float64)
    path = [begin]
    penalty = np.full(len(begin), float(l2))
    if fit_bias and not penalize_bias:
        penalty.reshape(max(1, num_classes), -1)[:, -1] = 0.0
    stream = Stream(int(key))
    order = list(range(len(rows)))
    losses: list[float] = []
    shift = np.zeros(len(begin)) if correction is None else np.asarray(correction, dtype=np.float64)
    for epoch in count() if steps and order else range(epochs if order else 0):
        if steps and len(path) > steps:
            break
        if patience and len(losses) > patience and min(losses[-patience:]) >= min(losses[:-patience]):
            break
        shuffle(order, stream)
        step = lr / (epoch + 1) ** decay
        losses.append(0.0)
        for first in range(0, len(order), batch):
            if steps and len(path) > steps:
                break
            chosen = order[first : first + batch]
            params, z = path[-1], rows[chosen]
            if num_classes:
                margins = z @ params.reshape(num_classes, -1).T
                losses[-1] += float(softmax_values(margins, targets[chosen]).sum())
                gradient = (softmax_slopes(margins, targets[chosen]).T @ z).ravel() / len(chosen)
            else:
                losses[-1] += float(loss_values(loss_code, z @ params, targets[chosen], hinge_width).sum())
                slopes = loss_slopes(loss_code, z @ params, targets[chosen], hinge_width)
                gradient = slopes @ z / len(chosen)
            path.append(params - step * (gradient + penalty * params + prox * (params - begin) + shift))
    return path


def train_one(x: Array, y: Array, start: Array, key: int, **how: Any) -> Array:
    """Where one client's local training arrives; `how` as for `train_path`."""
    return train_path(x, y, start, key, **how)[-1]


def path_moments(x: Array, y: Array, start: Array, key: int, **how: Any) -> tuple[float, Array, float]:
    """(I, Σ (y_i − y_0), Σ |y_i − y_0|²) over the I points from which a step is made; `how` as for `train_path`."""
    path = train_path(x, y, start, key, **how)
    gaps = np.array(path[:-1]).reshape(-1, len(path[0])) - path[0]
    return float(len(gaps)), gaps.sum(axis=0), float((gaps**2).sum())


def client_losses(
    x: Array, y: Array, offsets: Array, params: Array, loss_code: int, hinge_width: float = 1.0
) -> tuple[Array, Array]:
    """(sum of f over each client's rows, number of its rows with y m > 0)."""
    margins = with_bias(x, len(params) > x.shape[1]) @ np.asarray(params, dtype=np.float64)
    values = loss_values(loss_code, margins, np.asarray(y, dtype=np.float64), hinge_width)
    bounds = list(pairwise(offsets.tolist()))
    sums = np.array([values[a:b].sum() for a, b in bounds])
    correct = np.array([int((margins[a:b] * y[a:b] > 0).sum()) for a, b in bounds])
    return sums, correct


def softmax_client_losses(
    x: Array, y: Array, offsets: Array, params: Array, num_classes: int, fit_bias: bool
) -> tuple[Array, Array]:
    """(sum of the softmax loss over each client's rows, number of its rows whose own class alone is highest)."""
    labels = np.asarray(y, dtype=np.int64)
    margins = with_bias(x, fit_bias) @ np.asarray(params, dtype=np.float64).reshape(num_classes, -1).T
    values, own = softmax_values(margins, labels), margins[np.arange(len(labels)), labels]
    right = (margins >= own[:, None]).sum(axis=1) == 1
    bounds = list(pairwise(offsets.tolist()))
    return np.array([values[a:b].sum() for a, b in bounds]), np.array([int(right[a:b].sum()) for a, b in bounds])


def mix(params: Array, keep: float, payload: Array, weight: float, merged: Array) -> None:
    """The twin of `merging.mix`."""
    merged[:] = params * keep + payload * weight


def add_step(params: Array, model: Array, start: Array, weight: float, merged: Array) -> None:
    """The twin of `merging.add_step`."""
    merged[:] = params + (model - start) * weight


def move_slot(
    params: Array, slots: Array, row: int, payload: Array, weight: float, scale: float, merged: Array
) -> None:
    """The twin of `merging.move_slot`."""
    change = (payload - slots[row]) * weight
    slots[row] = payload if weight == 1.0 else slots[row] + change
    merged[:] = params + change * scale


def subtract(model: Array, origin: Array, change: Array) -> bool:
    """The twin of `merging.subtract`."""
    change[:] = model - origin
    return bool(np.isfinite(change).all())
