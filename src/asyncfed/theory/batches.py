"""How curved the loss of a mini-batch is: expected smoothness, and bounds for the worst batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.theory.blocks import blocks
from asyncfed.theory.curvature import client_smoothness, client_strong_convexity, largest_row_smoothness, row_smoothness
from asyncfed.theory.linear_data import LinearData

Array = NDArray[Any]


def expected_smoothness(
    rows: Any, batch_size: int | None, client_smoothness: Any, largest_row_smoothness: Any
) -> Array:
    """ℒ(b) with E|∇f_B(x) − ∇f_B(y)|² ≤ 2 ℒ (F_c(x) − F_c(y) − ⟨∇F_c(y), x − y⟩) for a fresh batch B of b rows.

    ℒ(b) = n (b − 1) / (b (n − 1)) · L_c + (n − b) / (b (n − 1)) · max_i L_i, for numbers or arrays:
    `rows` n ≥ 1; `batch_size` b ≥ 1 (None for 1, at most n is used); `client_smoothness` L_c;
    `largest_row_smoothness` max_i L_i. It falls from max_i L_i at b = 1 to L_c at b = n.

    >>> expected_smoothness(200, 32, 12.0, 182.0).round(4)
    np.float64(16.4849)
    """
    n = np.asarray(rows, dtype=np.float64)
    b = np.minimum(_whole(batch_size), n)
    others = np.maximum(n - 1.0, 1.0)
    of_client, of_row = n * (b - 1.0) / (b * others), (n - b) / (b * others)
    alone = n == 1  # the row is the client
    mixed = np.where(alone, 1.0, of_client) * client_smoothness + np.where(alone, 0.0, of_row) * largest_row_smoothness
    return np.asarray(mixed)[()]


def expected_smoothness_of(data: LinearData, batch_size: int | None = None, smooth: Array | None = None) -> Array:
    """ℒ(b) of every client, (C,); `smooth` (C,) are the L_c if they are already known. ∞ for the plain hinge.

    Args:
        data: the clients' rows and the loss.
        batch_size: b ≥ 1, rows of a mini-batch; None for single rows. A client with fewer rows uses all it has.
        smooth: L_c, (C,), if they are already known.

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> expected_smoothness_of(data, 2).round(4)
    array([6.6599, 2.6036])
    """
    if not data.is_smooth:
        return np.full(data.num_clients, np.inf)
    of_clients = client_smoothness(data) if smooth is None else smooth
    return expected_smoothness(data.sizes, batch_size, of_clients, largest_row_smoothness(data))


def batch_smoothness(
    data: LinearData, batch_size: int | None = None, short_batches: bool = True, smooth: Array | None = None
) -> Array:
    """(C,): no mini-batch loss of the client is less smooth than this, whichever rows it drew. ∞ for the plain hinge.

    The smaller of two bounds: the mean of the b largest L_i, and (n/b) L_c (a part of a sum of positive semidefinite
    matrices is at most the sum). With `short_batches` the last batch of an epoch, of n mod b rows, is counted in: the
    kernels train on it. `smooth` (C,) are the L_c if they are already known.

    Args:
        data: the clients' rows and the loss.
        batch_size: b ≥ 1, rows of a mini-batch; None for single rows. A client with fewer rows uses all it has.
        short_batches: whether the last batch of an epoch, of n mod b rows, counts too.
        smooth: L_c, (C,), if they are already known.

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> batch_smoothness(data), batch_smoothness(data, 3).round(5)
    (array([10.,  5.]), array([5.54647, 1.80474]))
    """
    if not data.is_smooth:
        return np.full(data.num_clients, np.inf)
    b = np.minimum(_whole(batch_size), data.sizes)
    if short_batches:
        left = data.sizes % b
        b = np.where(left > 0, left, b)
    of_clients = client_smoothness(data) if smooth is None else smooth
    return np.minimum(_mean_of_largest(data, b), data.sizes / b * of_clients)


def batch_strong_convexity(data: LinearData, batch_size: int | None = None, convex: Array | None = None) -> Array:
    """(C,): every mini-batch loss of the client is at least this strongly convex, whichever rows it drew.

    What the penalty gives: l2, or 0 if the bias is not penalised. Where a batch is the whole client, μ_c (`convex` (C,)
    if already known).

    Args:
        data: the clients' rows and the loss.
        batch_size: b ≥ 1, rows of a mini-batch; None for single rows. A client with fewer rows uses all it has.
        convex: μ_c, (C,), if they are already known.
    """
    whole = data.sizes <= _whole(batch_size)
    if not whole.any():
        return np.full(data.num_clients, data.smallest_penalty)
    return np.where(whole, client_strong_convexity(data) if convex is None else convex, data.smallest_penalty)


def _mean_of_largest(data: LinearData, counts: Array) -> Array:
    """The mean of each client's `counts[c]` largest L_i, (C,)."""
    means = np.empty(data.num_clients)
    for block in blocks(data):
        sizes = np.diff(block.starts)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        values = row_smoothness(data, block)
        order = np.lexsort((-values, owner))
        place = np.arange(len(values)) - np.repeat(block.starts[:-1], sizes)
        taken = place < np.repeat(counts[block.clients], sizes)
        means[block.clients] = block.sums(np.where(taken, values[order], 0.0)) / counts[block.clients]
    return means


def _whole(batch_size: int | None) -> int:
    if batch_size is None:
        return 1
    if batch_size != int(batch_size) or batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}; it must be a whole number of at least 1.")
    return int(batch_size)
