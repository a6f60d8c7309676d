"""CenteredClipping: a point that moves towards the vectors, by no more than a radius towards each."""

from __future__ import annotations

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.registry import register
from asyncfed.rules.aggregators.protocol import Aggregate, by_id, need_vectors
from asyncfed.rules.protocol import Arrays
from asyncfed.rules.recent_numbers import RecentNumbers


@register("aggregator")
class CenteredClipping(Config, tag_field="kind", tag="centered_clipping"):
    """Centred clipping: the last aggregate moves towards each vector by at most a radius.

        v <- v + sum_i w_i (v_i - v) min(1, r / |v_i - v|),     l times;     a = v

    v is remembered, and 0 at the start. A liar moves it by at most its weight times r l, however long its vector is.
    r = inf, l = 1 is the mean. Left out, r is the median of the last distances from v, those of this merge among them:
    it follows the honest ones as long as they are more than half. Clients that send the change of a momentum of their
    own get the paper's guarantee; without it, lies of one direction add up over time. Nobody is judged: the scores are
    the distances.

    Args:
        radius: r, above 0 (the paper's experiments: 10, for gradients); left out, the running median.
        iterations: l, 1 or more.
        window: over how many distances the median is taken, 1 or more.

    >>> CenteredClipping(radius=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: centered_clipping.radius is 0.0; it must be a positive number, or left out.

    Karimireddy, He & Jaggi, "Learning from History for Byzantine Robust Optimization", ICML 2021.
    """

    radius: float | UnsetType = UNSET
    iterations: int = 1
    window: int = 50

    def __post_init__(self) -> None:
        if self.radius is not UNSET and not self.radius > 0:
            raise ConfigError(f"centered_clipping.radius is {self.radius}; it must be a positive number, or left out.")
        for name in ("iterations", "window"):
            if getattr(self, name) < 1:
                raise ConfigError(f"centered_clipping.{name} is {getattr(self, name)}; it must be at least 1.")

    def tolerates(self, count: int) -> int:
        """Fewer than half: with a given radius, more cannot move it far in one merge either, but where they want."""
        return (count - 1) // 2

    def check(self, count: int) -> None:
        """Without a radius, refuse fewer than 3 vectors."""
        need_vectors("centered_clipping", count, 3 if self.radius is UNSET else 1, 1 if self.radius is UNSET else 0)

    def init(self, like: np.ndarray) -> Arrays:
        """v = 0, and no distances."""
        center = {"center": np.zeros(like.size)}
        return center if self.radius is not UNSET else {**center, **RecentNumbers.init("distances", self.window)}

    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]:
        """v after its moves."""
        from asyncfed.kernels.distances import squared_distances, weighted_sum  # loads numba
        from asyncfed.kernels.merge_workspace import merge_threads

        threads = merge_threads()
        rows, shares, order = by_id(vectors, weights, ids)
        center = memory["center"]
        found = distances = np.sqrt(squared_distances(rows, center, threads))
        radius = self._radius(memory, found)
        for number in range(self.iterations):
            if number:
                distances = np.sqrt(squared_distances(rows, center, threads))
            within = distances <= radius
            pulls = shares * np.where(within, 1.0, radius / np.where(within, 1.0, distances))
            center = max(0.0, 1.0 - float(pulls.sum())) * center + weighted_sum(rows, pulls, threads)
        scores = np.empty_like(found)
        scores[order] = found
        return Aggregate(center.astype(vectors.dtype), None, scores), {**memory, "center": center}

    def _radius(self, memory: Arrays, distances: np.ndarray) -> float:
        if self.radius is not UNSET:
            return self.radius
        recent = RecentNumbers(memory, "distances")
        recent.add(np.sort(distances))
        return recent.quantile(0.5)
