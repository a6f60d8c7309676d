"""Average: the weighted mean, which withstands nobody."""

from __future__ import annotations

from typing import Literal

import numpy as np

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.rules.aggregators.protocol import Aggregate, Memoryless, by_id, need_vectors
from asyncfed.rules.protocol import Arrays


@register("aggregator")
class Average(Memoryless, Config, tag_field="kind", tag="average"):
    """The weighted mean. A single liar moves it anywhere: for comparison, and inside other aggregators.

        a = sum_i w_i v_i

    Summed in the order of the ids.

    >>> Average().tolerates(100)
    0
    """

    @property
    def by_coordinate(self) -> Literal[True]:
        """Coordinates do not depend on each other."""
        return True

    def tolerates(self, count: int) -> int:
        """Nobody."""
        return 0

    def check(self, count: int) -> None:
        """One vector is enough."""
        need_vectors("average", count, 1, 0)

    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]:
        """The weighted mean."""
        vectors, weights, _ = by_id(vectors, weights, ids)
        return Aggregate(weighted_mean(vectors, weights)), memory


def weighted_mean(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """`sum_i weights_i * vectors_i`, added in the order of the rows, in double precision."""
    from asyncfed.kernels.distances import weighted_sum  # loads numba
    from asyncfed.kernels.merge_workspace import merge_threads

    return weighted_sum(vectors, weights, merge_threads()).astype(vectors.dtype, copy=False)


def mean_of_kept(vectors: np.ndarray, weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The weighted mean of those that are kept, to the last bit `weighted_mean` if all are; with equal weights, if they
    have none at all."""
    shares = np.where(kept, weights, 0.0)
    if not kept.any() or (kept.all() and abs(shares.sum() - 1.0) < 1e-12):
        return weighted_mean(vectors, shares)
    if not shares.any():
        shares = kept.astype(np.float64)
    return weighted_mean(vectors, shares / shares.sum())
