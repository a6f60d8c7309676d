"""In which order a ticket reads its client's rows: the order of `kernels/sgd.py`, for trainers written elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.sgd_loops import shuffle

Array = NDArray[Any]


@compiled
def _fill_orders(key: np.uint64, orders: Array) -> None:
    order = np.arange(orders.shape[1]).astype(np.uint32)
    word = key
    for epoch in range(orders.shape[0]):
        word = shuffle(order, word)
        for i in range(order.shape[0]):
            orders[epoch, i] = order[i]


@compiled
def _fill_schedule(key: np.uint64, num_rows: int, first_row: int, batch: int, rows: Array, weights: Array) -> None:
    order = np.arange(num_rows).astype(np.uint32)
    word = key
    step = 0
    steps = rows.shape[0] if num_rows > 0 else 0
    while step < steps:
        word = shuffle(order, word)
        for first in range(0, min(num_rows, (steps - step) * batch), batch):
            size = min(batch, num_rows - first)
            for i in range(batch):
                real = i < size
                rows[step, i] = first_row + order[first + i if real else first]
                weights[step, i] = 1.0 / size if real else 0.0
            step += 1


def epoch_orders(key: int, num_rows: int, epochs: int) -> Array:
    """Row numbers 0 … n−1 in the order of each epoch, shape (epochs, n).

    >>> epoch_orders(7, 5, 1)
    array([[3, 0, 2, 4, 1]])
    """
    orders = np.empty((epochs, num_rows), np.int64)
    _fill_orders(np.uint64(key), orders)
    return orders


def fill_schedule(key: int, num_rows: int, first_row: int, batch: int, rows: Array, weights: Array) -> None:
    """Which rows each step of a ticket reads, and what each weighs in the step's mean.

    `rows` (steps, batch) gets numbers from `first_row` on, `weights` 1/size, epoch after epoch until all steps have
    theirs. A step with fewer rows than `batch` is filled up with rows of weight 0.
    """
    _fill_schedule(np.uint64(key), num_rows, first_row, batch, rows, weights)
