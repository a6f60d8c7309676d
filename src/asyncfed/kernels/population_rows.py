"""The rows of clients that are made when they are needed, each a function of a key and the client's number.

Client c has weights w_c = weights + heterogeneity · ξ_c and a centre m_c = shift · η_c, where ξ_c and η_c are standard
normal. Its row i is

    x_ij = m_cj + 2√3 (u − ½),     y_i = w_c · x_i + bias + noise · ε,     labels: the sign of that

u uniform and ε standard normal: the features of a client have variance 1. Numbers are drawn from three streams of
`core.random`, by purpose and client: d for ξ_c, d for η_c, and for each row d for u and one for ε. Everything is
computed in double precision, a response in the order of the features, and rounded when it is stored.

`kernels/population_reference.py` is the readable twin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.duration_draws import normal_quantile
from asyncfed.kernels.keyed_words import GOLDEN, draw_key, mix64

Array = NDArray[Any]

WIDTH = 2.0 * 3.0**0.5
"""Of the interval from which a feature is drawn: its variance is 1."""

_12 = np.uint64(12)


class RowLaw(NamedTuple):
    """What all clients share.

    Args:
        weights: (d,) float64.
        bias: the response where all features are 0.
        heterogeneity: standard deviation of a client's weights around them, 0 or more.
        shift: standard deviation of a client's centre around 0, 0 or more.
        noise: standard deviation of a response, 0 or more.
        labels: whether targets are the responses' signs, −1 and +1.
    """

    weights: Array
    bias: float
    heterogeneity: float
    shift: float
    noise: float
    labels: bool


class RowKeys(NamedTuple):
    """Purpose keys, 64 bits each: of clients' weights, of their centres, and of their rows."""

    weights: Any
    shift: Any
    rows: Any


@compiled
def _unit(word: np.uint64) -> float:
    """`core.random.Stream.unit`, whose word this is."""
    return (np.float64(mix64(word) >> _12) + 0.5) * 2.0**-52


@compiled
def _draw_around(out: Array, spread: float, key: np.uint64) -> None:
    """Add to each number a normal one of this standard deviation."""
    if spread > 0.0:
        word = key
        for j in range(out.shape[0]):
            word += GOLDEN
            out[j] += spread * normal_quantile(_unit(word))


@compiled
def make_rows(
    clients: Array,
    offsets: Array,
    first: int,
    last: int,
    x: Array,
    y: Array,
    weights: Array,
    bias: float,
    heterogeneity: float,
    shift: float,
    noise: float,
    labels: bool,
    weights_key: np.uint64,
    shift_key: np.uint64,
    rows_key: np.uint64,
) -> None:
    """Write the rows of `clients[k]`, for k from `first` up to `last`, to rows `offsets[k]` up to `offsets[k + 1]`."""
    d = weights.shape[0]
    own, centre = np.empty(d), np.empty(d)
    for k in range(first, last):
        client = clients[k]
        own[:] = weights
        centre[:] = 0.0
        _draw_around(own, heterogeneity, draw_key(weights_key, client, 0))
        _draw_around(centre, shift, draw_key(shift_key, client, 0))
        word = draw_key(rows_key, client, 0)
        for i in range(offsets[k], offsets[k + 1]):
            response = bias
            for j in range(d):
                word += GOLDEN
                value = centre[j] + WIDTH * (_unit(word) - 0.5)
                x[i, j] = value
                response += own[j] * value
            word += GOLDEN
            if noise > 0.0:
                response += noise * normal_quantile(_unit(word))
            y[i] = (1.0 if response > 0.0 else -1.0) if labels else response


@compiled
def count_reached(bounds: Array, value: float) -> int:
    """How many of these numbers, in ascending order, are at most `value`."""
    low, high = 0, bounds.shape[0]
    while low < high:
        middle = (low + high) // 2
        if bounds[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def count_rows(clients: Array, key: np.uint64, least: int, bounds: Array) -> Array:
    """How many rows each of these clients has: `least`, and one more for each bound that its own number reaches."""
    counts = np.empty(clients.shape[0], np.int64)
    for k in range(clients.shape[0]):
        unit = (np.float64(draw_key(key, clients[k], 0) >> _12) + 0.5) * 2.0**-52
        counts[k] = least + count_reached(bounds, unit)
    return counts
