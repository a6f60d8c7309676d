"""The kernels again, slow and readable: what the compiled loops are tested against.

The training of linear models has the same bits as the compiled one; all else is in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import Stream
from asyncfed.kernels.losses import LOGISTIC, loss_slopes, loss_values
from asyncfed.kernels.softmax_losses import softmax_slopes, softmax_values
from asyncfed.kernels.vector_code import exponentials, fused_multiply_add, lanes_of

Array = NDArray[Any]
State = TypeVar("State")
Step = Callable[[Array, list[int], float], tuple[float, Array]]
"""From params, the rows of a batch and the rate of its epoch: the sum of the rows' losses, and the next params."""


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


def in_blocks(x: Array, fit_bias: bool) -> Array:
    """The rows as (n, blocks, L) in their own precision: a column of ones for the bias, zeros in what is left.

    >>> in_blocks(np.array([[2.0, 3.0, 5.0, 7.0]]), fit_bias=True).tolist()
    [[[2.0, 3.0, 5.0, 7.0], [1.0, 0.0, 0.0, 0.0]]]
    """
    lanes = lanes_of(x.dtype)
    blocks = max(1, -(-(x.shape[1] + fit_bias) // lanes))
    rows = np.zeros((len(x), blocks * lanes), x.dtype)
    rows[:, : x.shape[1]] = x
    if fit_bias:
        rows[:, x.shape[1]] = 1.0
    return rows.reshape(len(x), blocks, lanes)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a · b + c in the precision of c, rounded once."""
    factor, other, added = (np.array(part, order="C").ravel() for part in np.broadcast_arrays(a, b, c))
    result = np.empty_like(added)
    fused_multiply_add(factor, other, added, result)
    return result.reshape(np.shape(c))


def margins_in_order(rows: Array, weights: Array) -> Array:
    """m of each row, summed as in `kernels/batch_step.py`; `rows` (n, blocks, L), `weights` (blocks, L)."""
    lanes = weights[0] * rows[:, 0]
    for k in range(1, len(weights)):
        lanes = fma(weights[k], rows[:, k], lanes)
    if lanes.shape[1] == 8:
        lanes = lanes[:, :4] + lanes[:, 4:]
    margins: Array = (lanes[:, 0] + lanes[:, 1]) + (lanes[:, 2] + lanes[:, 3])
    return margins


def gradient_in_order(rows: Array, slopes: Array) -> Array:
    """Σ slope · z, one row after another."""
    total: Array = np.zeros_like(rows[0])
    for row, slope in zip(rows, slopes, strict=True):
        total = fma(slope, row, total)
    return total


def slopes_in_order(loss_code: int, margins: Array, y: Array, hinge_width: float) -> Array:
    """∂f/∂m as the kernel rounds it: the formulas of `losses.py`, the logistic loss by its own exponential."""
    if loss_code != LOGISTIC:
        return loss_slopes(loss_code, margins, y, hinge_width).astype(margins.dtype)
    powers = np.empty_like(margins)
    exponentials(y * margins, powers)
    slopes: Array = -y / (1.0 + powers)
    return slopes


def _linear_step(
    x: Array,
    y: Array,
    begin: Array,
    correction: Array | None,
    *,
    prox: float,
    loss_code: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    hinge_width: float,
) -> Step:
    """The step of `kernels/batch_step.py`, bit by bit, in the data's precision."""
    real = x.dtype.type
    rows = in_blocks(x, fit_bias)
    penalized = len(begin) if penalize_bias else x.shape[1]
    pulled = bool(l2) or bool(prox) or correction is not None

    def step(params: Array, chosen: list[int], rate: float) -> tuple[float, Array]:
        weights = np.zeros(rows[0].size, x.dtype)
        weights[: len(params)] = params
        margins = margins_in_order(rows[chosen], weights.reshape(rows[0].shape))
        loss = loss_values(loss_code, margins.astype(np.float64), y[chosen].astype(np.float64), hinge_width)
        slopes = slopes_in_order(loss_code, margins, y[chosen], hinge_width)
        change = real(rate / len(chosen)) * gradient_in_order(rows[chosen], slopes).ravel()[: len(params)]
        if pulled:
            change[:penalized] += real(rate * l2) * params[:penalized]
            change += real(rate * prox) * (params - begin)
        if correction is not None:
            change += real(rate) * correction.astype(x.dtype)
        return float(loss.sum()), params - change

    return step


def _softmax_step(
    x: Array,
    y: Array,
    begin: Array,
    correction: Array | None,
    *,
    prox: float,
    num_classes: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
) -> Step:
    """The step of `kernels/softmax.py`, in double precision."""
    rows, labels = with_bias(x, fit_bias), np.asarray(y, dtype=np.int64)
    shift = np.zeros(len(begin)) if correction is None else np.asarray(correction, dtype=np.float64)
    penalty = np.full(len(begin), float(l2))
    if fit_bias and not penalize_bias:
        penalty.reshape(num_classes, -1)[:, -1] = 0.0

    def step(params: Array, chosen: list[int], rate: float) -> tuple[float, Array]:
        z = rows[chosen]
        margins = z @ params.reshape(num_classes, -1).T
        gradient = (softmax_slopes(margins, labels[chosen]).T @ z).ravel() / len(chosen)
        pulls = penalty * params + prox * (params - begin) + shift
        return float(softmax_values(margins, labels[chosen]).sum()), params - rate * (gradient + pulls)

    return step


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

    With `num_classes` above 0 the loss is the softmax of so many margins, as in `kernels/softmax.py`, in double
    precision; else every point has the kernel's bits.
    """
    begin = np.asarray(start, dtype=np.float64 if num_classes else x.dtype)
    model: dict[str, Any] = {"prox": prox, "l2": l2, "penalize_bias": penalize_bias, "fit_bias": fit_bias}
    if num_classes:
        make_step = _softmax_step(x, y, begin, correction, num_classes=num_classes, **model)
    else:
        make_step = _linear_step(x, y, begin, correction, loss_code=loss_code, hinge_width=hinge_width, **model)
    return make_steps(
        make_step, begin, len(x), key, epochs=epochs, batch=batch, lr=lr, decay=decay, patience=patience, steps=steps
    )


def make_steps(
    make_step: Callable[[State, list[int], float], tuple[float, State]],
    begin: State,
    num_rows: int,
    key: int,
    *,
    epochs: int,
    batch: int,
    lr: float,
    decay: float,
    patience: int,
    steps: int,
) -> list[State]:
    """Every point of a training, each made from the one before: which rows are read when, and for how long."""
    path = [begin]
    stream = Stream(int(key))
    order = list(range(num_rows))
    losses: list[float] = []
    for epoch in count() if steps and order else range(epochs if order else 0):
        if steps and len(path) > steps:
            break
        if patience and len(losses) > patience and min(losses[-patience:]) >= min(losses[:-patience]):
            break
        shuffle(order, stream)
        losses.append(0.0)
        for first in range(0, len(order), batch):
            if steps and len(path) > steps:
                break
            loss, params = make_step(path[-1], order[first : first + batch], lr / (epoch + 1) ** decay)
            losses[-1] += loss
            path.append(params)
    return path


def train_one(x: Array, y: Array, start: Array, key: int, **how: Any) -> Array:
    """Where one client's local training arrives; `how` as for `train_path`."""
    return train_path(x, y, start, key, **how)[-1]


def path_moments(x: Array, y: Array, start: Array, key: int, **how: Any) -> tuple[float, Array, float]:
    """(I, Σ (y_i − y_0), Σ |y_i − y_0|²) over the I points from which a step is made; `how` as for `train_path`."""
    path = train_path(x, y, start, key, **how)
    gaps = np.array(path[:-1], np.float64).reshape(-1, len(path[0])) - path[0]
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


def mix_into(params: Array, keep: float, payload: Array, weight: float) -> None:
    """The twin of `merging.mix_into`."""
    mix(params, keep, payload, weight, params)


def add_step_into(params: Array, model: Array, start: Array, weight: float) -> None:
    """The twin of `merging.add_step_into`."""
    add_step(params, model, start, weight, params)


def move_slot(
    params: Array, slots: Array, row: int, payload: Array, weight: float, scale: float, merged: Array
) -> None:
    """The twin of `merging.move_slot`."""
    change = (payload - slots[row]) * weight
    slots[row] = payload if weight == 1.0 else slots[row] + change
    merged[:] = params + change * scale


def add_slots(slots: Array, origin: Array, shares: Array, deviation: Array) -> None:
    """The twin of `merging.add_slots`."""
    for slot, share in zip(slots, shares, strict=True):
        deviation += (slot - origin) * share


def subtract(model: Array, origin: Array, change: Array) -> bool:
    """The twin of `merging.subtract`."""
    change[:] = model - origin
    return bool(np.isfinite(change).all())


def square_distance(one: Array, other: Array) -> float:
    """The twin of `square_sums.square_distance`."""
    difference = one.astype(np.float64) - other
    sums = np.zeros(32)
    for first in range(0, difference.size, 32):
        part = difference[first : first + 32]
        sums[: part.size] += part * part
    return float(sum(sums.tolist()))
