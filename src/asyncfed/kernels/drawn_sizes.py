"""How many rows each client has, where that follows from its number: a sequence that holds no list."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import draw_key, unit

BLOCK = 1 << 16
"""Clients that are counted at once where all are gone through."""


class DrawnSizes(Sequence[int]):
    """Client c has `least` rows, and one more for each of `bounds` that its keyed uniform number reaches.

    So any law of whole numbers can be written: the bound of a k-th additional row is the probability of having fewer.

    Args:
        num_clients: how many clients there are, 1 or more.
        least: rows that each has at least, 1 or more.
        bounds: numbers from 0 to 1 in ascending order.
        key: the purpose key of the clients' numbers.

    >>> sizes = DrawnSizes(10**8, 5, np.array([0.5]), key=7)
    >>> len(sizes), {sizes[client] for client in range(100)}, sizes.largest, sizes.mean
    (100000000, {5, 6}, 6, 5.5)
    """

    def __init__(self, num_clients: int, least: int, bounds: NDArray[np.float64], key: int) -> None:
        self.num_clients, self.least, self.key = num_clients, least, key
        self.bounds = np.ascontiguousarray(bounds, np.float64)
        self._bounds: list[float] = self.bounds.tolist()

    @property
    def largest(self) -> int:
        """The most rows that a client can have."""
        return self.least + len(self._bounds)

    @property
    def mean(self) -> float:
        """The rows of a client on average, by the law."""
        return self.least + float(np.sum(1.0 - self.bounds))

    def __len__(self) -> int:
        return self.num_clients

    def __getitem__(self, client: Any) -> Any:
        if not 0 <= client < self.num_clients:
            raise IndexError(client)
        if not self._bounds:
            return self.least
        return self.least + bisect_right(self._bounds, unit(draw_key(self.key, client, 0)))

    def __iter__(self) -> Iterator[int]:
        if not self._bounds:
            return repeat(self.least, self.num_clients)
        blocks = (range(first, min(first + BLOCK, self.num_clients)) for first in range(0, self.num_clients, BLOCK))
        return (size for block in blocks for size in self.of(np.array(block)).tolist())

    def of(self, clients: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of each of these clients."""
        from asyncfed.kernels.population_rows import count_rows  # compiled: loaded when it is first needed

        return count_rows(clients, np.uint64(self.key), self.least, self.bounds)
