"""GeometricMedian: the point with the least sum of distances."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.rules.aggregators.median import coordinate_median
from asyncfed.rules.aggregators.protocol import Aggregate, Memoryless, by_id, need_vectors
from asyncfed.rules.protocol import Arrays


@register("aggregator")
class GeometricMedian(Memoryless, Config, tag_field="kind", tag="geometric_median"):
    """The geometric median, by Weiszfeld's iterations from the median of each coordinate.

        a = argmin_z sum_i w_i |v_i - z|;      z <- sum_i c_i v_i / sum_i c_i,   c_i = w_i / max(|v_i - z|, nu s)

    s is the (weighted) median of the distances from the start, so that neither the unit of the vectors nor a far liar
    matters; nu keeps a vector that z has met from stopping it there. The start is robust itself: the usual one, the
    mean, is as far as the liars want it, and Weiszfeld comes back from there by a factor of about k an iteration only.
    It stops when z moves by less than `tolerance` s. Unlike the median of coordinates it does not depend on the axes.
    Lies of less than half the weight leave it within a bound of the honest vectors.

    Args:
        iterations: at most so many, 1 or more. Dahan & Levy's code makes 3.
        tolerance: 0 or more.
        smoothing: nu, above 0.

    >>> GeometricMedian().tolerates(10)
    4

    Weiszfeld 1937; Pillutla et al., "Robust Aggregation for Federated Learning", IEEE TSP 2022; weighted: Dahan & Levy,
    NeurIPS 2024.
    """

    iterations: int = 20
    tolerance: float = 1e-4
    smoothing: float = 1e-6

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise ConfigError(f"geometric_median.iterations is {self.iterations}; it must be at least 1.")
        if not (isfinite(self.tolerance) and self.tolerance >= 0):
            raise ConfigError(f"geometric_median.tolerance is {self.tolerance}; it must be 0 or a positive number.")
        if not (isfinite(self.smoothing) and self.smoothing > 0):
            raise ConfigError(f"geometric_median.smoothing is {self.smoothing}; it must be a positive number.")

    def tolerates(self, count: int) -> int:
        """Fewer than half."""
        return (count - 1) // 2

    def check(self, count: int) -> None:
        """Refuse fewer than 3 vectors."""
        need_vectors("geometric_median", count, 3, 1)

    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]:
        """Weiszfeld's point."""
        from asyncfed.kernels.distances import squared_distances, weighted_sum  # loads numba
        from asyncfed.kernels.merge_workspace import merge_threads

        threads = merge_threads()
        rows, shares, _ = by_id(vectors, weights, ids)
        point = coordinate_median(rows, shares).astype(np.float64)
        distances = np.sqrt(squared_distances(rows, point, threads))
        scale = float(coordinate_median(distances[:, None], shares)[0])
        for _ in range(self.iterations if 0.0 < scale < np.inf else 0):
            pulls = shares / np.maximum(distances, self.smoothing * scale)
            moved = weighted_sum(rows, pulls / pulls.sum(), threads)
            shift = sqrt(float(squared_distances(moved[None], point, threads)[0]))
            point = moved
            if shift <= self.tolerance * scale:
                break
            distances = np.sqrt(squared_distances(rows, point, threads))
        return Aggregate(point.astype(vectors.dtype)), memory
