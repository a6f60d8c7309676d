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


def epoch_orders(key: int, num_rows: int, epochs: int) -> Array:
    """Row numbers 0 … n−1 in the order of each epoch, shape (epochs, n).

    >>> epoch_orders(7, 5, 1)
    array([[3, 0, 2, 4, 1]])
    """
    orders = np.empty((epochs, num_rows), np.int64)
    _fill_orders(np.uint64(key), orders)
    return orders
