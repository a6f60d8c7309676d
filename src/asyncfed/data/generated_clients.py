"""Clients whose rows are made when they are needed: a law, its keys, and how many clients there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncfed.core.random import purpose_key
from asyncfed.kernels.drawn_sizes import DrawnSizes

if TYPE_CHECKING:
    from asyncfed.kernels.population_rows import RowKeys, RowLaw


@dataclass(frozen=True, eq=False)
class GeneratedClients:
    """The clients of a population. They hold no rows: `pack` makes those of the clients that are named.

    Args:
        sizes: how many rows each client has.
        law: how a row is drawn: see `kernels/population_rows.py`.
        seed: of everything drawn.
        dtype: of features and targets, float32 or float64.
        measured_clients: on how many of them a model is measured, 1 or more.
    """

    sizes: DrawnSizes
    law: RowLaw
    seed: int
    dtype: np.dtype[Any]
    measured_clients: int

    @property
    def num_clients(self) -> int:
        """How many clients there are."""
        return self.sizes.num_clients

    @property
    def num_features(self) -> int:
        """Features of a row."""
        return len(self.law.weights)

    @property
    def labels(self) -> bool:
        """Whether targets are −1 and +1."""
        return self.law.labels

    def count_rows(self, clients: Sequence[int]) -> np.ndarray:
        """The rows of each of these clients."""
        return self.sizes.of(np.array(clients, np.int64))

    def pack(
        self, clients: Sequence[int], threads: int = 1, held_out: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features, targets and offsets of the rows of these clients, one client after another.

        Args:
            clients: their numbers; one may occur more than once.
            threads: threads to compute with, 1 or more; the rows do not depend on it.
            held_out: as many other rows of the same clients, which nobody trains on.
        """
        from asyncfed.kernels.population_rows import make_rows  # compiled: loaded when it is first needed
        from asyncfed.kernels.threads import run_split

        chosen = np.array(clients, np.int64)
        counts = self.sizes.of(chosen)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        x, y = np.empty((offsets[-1], self.num_features), self.dtype), np.empty(offsets[-1], self.dtype)
        keys = self._held_out_keys if held_out else self._keys

        def make(first: int, last: int) -> None:
            make_rows(chosen, offsets, first, last, x, y, *self.law, *keys)

        run_split(make, counts * (3 * self.num_features), threads)
        return x, y, offsets

    @cached_property
    def _keys(self) -> RowKeys:
        return self._keys_of("population rows")

    @cached_property
    def _held_out_keys(self) -> RowKeys:
        return self._keys_of("population held out")

    def _keys_of(self, rows: str) -> RowKeys:
        from asyncfed.kernels.population_rows import RowKeys

        purposes = ("population weights", "population shift", rows)
        return RowKeys(*(np.uint64(purpose_key(self.seed, purpose)) for purpose in purposes))

    def sha256(self) -> str:
        """The fingerprint of the law and everything else that the rows follow from."""
        law, sizes = self.law, self.sizes
        numbers = (law.bias, law.heterogeneity, law.shift, law.noise, law.labels)
        words = f"population {sizes.num_clients} {sizes.least} {self.seed} {self.dtype.str} {numbers!r}"
        return sha256(words.encode() + law.weights.tobytes() + sizes.bounds.tobytes()).hexdigest()
