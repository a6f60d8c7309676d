"""Median: the middle value of each coordinate."""

from __future__ import annotations

from typing import Literal

import numpy as np

from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.registry import register
from asyncfed.rules.aggregators.protocol import (
    Aggregate,
    Memoryless,
    are_equal,
    by_id,
    check_liars,
    need_vectors,
)
from asyncfed.rules.protocol import Arrays


@register("aggregator")
class Median(Memoryless, Config, tag_field="kind", tag="median"):
    """The median of each coordinate: within the range of the honest values as long as these are more than half.

        a_j = the first value of coordinate j, from the smallest, at which the cumulative weight exceeds 1/2;
              if it is exactly 1/2 at the one before, the mean of the two

    With equal weights that is the plain median. Of k vectors (k - 1) // 2 may be lies; with weights, lies of less than
    half the weight: whose updates count more must not be for clients to say. Where honest clients differ much, the
    median of their changes is not their mean, also if nobody lies: what most of them have no part in, it leaves out.

    Args:
        liars: how many lies a merge may hold, f; fewer than 2f + 1 vectors are refused. Left out: as many as it
            withstands, and at least 3 vectors are needed, which withstand 1.

    >>> Median().tolerates(10), Median(liars=2).tolerates(10)
    (4, 4)
    >>> Median(liars=2).check(4)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: median needs at least 5 updates at once to withstand 2 liars; there are 4. Merge more at once, or set `liars` lower.

    Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018; weighted: Dahan &
    Levy, "Weight for Robustness: A Comprehensive Approach towards Optimal Fault-Tolerant Asynchronous ML", NeurIPS 2024.
    """  # noqa: E501

    liars: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_liars("median", self.liars)

    @property
    def by_coordinate(self) -> Literal[True]:
        """Coordinates do not depend on each other."""
        return True

    def tolerates(self, count: int) -> int:
        """Fewer than half."""
        return (count - 1) // 2

    def check(self, count: int) -> None:
        """Refuse fewer than 2f + 1 vectors."""
        liars = 1 if self.liars is UNSET else self.liars
        need_vectors("median", count, 2 * liars + 1, liars)

    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]:
        """The median of each coordinate."""
        return Aggregate(coordinate_median(*by_id(vectors, weights, ids)[:2])), memory


def coordinate_median(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The (weighted) median of each coordinate."""
    from asyncfed.kernels.merge_workspace import merge_threads
    from asyncfed.kernels.order_statistics import trimmed_mean, weighted_median  # loads numba

    if are_equal(weights):
        return trimmed_mean(vectors, (len(vectors) - 1) // 2, merge_threads())
    return weighted_median(vectors, weights, merge_threads())
