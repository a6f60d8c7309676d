"""TrimmedMean: the mean of each coordinate without its extreme values."""

from __future__ import annotations

from typing import Literal

import numpy as np

from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.registry import register
from asyncfed.rules.aggregators.protocol import (
    Aggregate,
    Memoryless,
    are_equal,
    assumed_liars,
    by_id,
    check_liars,
    need_vectors,
)
from asyncfed.rules.protocol import Arrays


@register("aggregator")
class TrimmedMean(Memoryless, Config, tag_field="kind", tag="trimmed_mean"):
    """The f smallest and the f largest values of each coordinate are dropped; the weighted mean of the rest.

        a_j = sum_(i in R_j) w_i v_ij / sum_(i in R_j) w_i,     R_j: all but the f smallest and f largest v_ij

    Values are dropped by their number, not their weight; of equal ones, those of smaller ids count as the smaller.
    f = 0 is the mean, f = (k - 1) // 2 with equal weights and k odd the median. Where the rest has no weight at all, it
    counts equally.

    Args:
        liars: f, 0 or more; fewer than 2f + 1 vectors are refused. Left out: a third of the vectors, rounded up, and
            below half of them; then at least 3 vectors are needed, which withstand 1.

    >>> TrimmedMean(liars=2).tolerates(10), TrimmedMean().tolerates(12)
    (2, 4)

    Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018.
    """

    liars: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_liars("trimmed_mean", self.liars)

    @property
    def by_coordinate(self) -> Literal[True]:
        """Coordinates do not depend on each other."""
        return True

    def tolerates(self, count: int) -> int:
        """f."""
        return min(assumed_liars(self.liars, count, (count - 1) // 2), (count - 1) // 2)

    def check(self, count: int) -> None:
        """Refuse fewer than 2f + 1 vectors."""
        liars = 1 if self.liars is UNSET else self.liars
        need_vectors("trimmed_mean", count, 2 * liars + 1, liars)

    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]:
        """The mean of what is left of each coordinate."""
        from asyncfed.kernels.merge_workspace import merge_threads
        from asyncfed.kernels.order_statistics import trimmed_mean, weighted_trimmed_mean  # loads numba

        vectors, weights, _ = by_id(vectors, weights, ids)
        trimmed = self.tolerates(len(vectors))
        if are_equal(weights):
            return Aggregate(trimmed_mean(vectors, trimmed, merge_threads())), memory
        return Aggregate(weighted_trimmed_mean(vectors, weights, trimmed, merge_threads())), memory
