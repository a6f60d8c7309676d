"""Ctma: the mean of the vectors nearest to a robust aggregate."""

from __future__ import annotations

from math import inf

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.registry import register
from asyncfed.rules.aggregators.average import mean_of_kept
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregate, Aggregator, assumed_liars, by_id, check_liars, need_vectors
from asyncfed.rules.protocol import Arrays


@register("aggregator")
class Ctma(Config, tag_field="kind", tag="ctma"):
    """Centred trimmed meta-aggregation: the weighted mean of the k - f vectors nearest to a robust aggregate.

        a0 = anchor(v; w);     a = sum_(i in K) w_i v_i / sum_(i in K) w_i,     K: the k - f nearest to a0

    With `share` = lambda, by weight: the nearest until they have the weight 1 - lambda together, the last one with what
    is missing to it. Of equal distances, the smaller ids are nearer, so that exactly k - f are kept; public code that
    keeps all within the k - f-th distance divides their sum by k - f nevertheless. f = 0 and lambda = 0 are the mean.
    Who is not kept is filtered, with the distance from a0 as the score.

    With `factor`, of the f farthest only those are left out that are more than `factor` times as far from a0 as the
    median vector: then nobody is, as long as nobody stands out, and honest clients whose data differ are heard.

    Args:
        anchor: a robust aggregate; it must withstand f liars itself.
        liars: f; fewer than 2f + 1 vectors are refused. Left out: a third of the vectors, rounded up, at most what the
            anchor withstands; then at least 3 vectors are needed, which withstand 1.
        share: lambda, the share of the weight that liars may have, from 0 to below 1/2; in place of `liars`.
        factor: how many times the median distance is always kept, 1 or more; left out: nothing is kept for being near.

    >>> Ctma().tolerates(10), Ctma(share=0.25).tolerates(10)
    (4, 2)

    Dahan & Levy, "Weight for Robustness: A Comprehensive Approach towards Optimal Fault-Tolerant Asynchronous ML",
    NeurIPS 2024.
    """

    anchor: Aggregator = Median()
    liars: int | UnsetType = UNSET
    share: float | UnsetType = UNSET
    factor: float | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_liars("ctma", self.liars)
        if self.factor is not UNSET and not 1 <= self.factor < inf:
            raise ConfigError(f"ctma.factor is {self.factor}; it must be 1 or more, or left out.")
        if self.factor is not UNSET and self.share is not UNSET:
            raise ConfigError("ctma has both factor and share; factor goes with liars. Leave one of them out.")
        if self.share is not UNSET and not 0 <= self.share < 0.5:
            raise ConfigError(f"ctma.share is {self.share}; it must be at least 0 and below 0.5, or left out.")
        if self.share is not UNSET and self.liars is not UNSET:
            raise ConfigError("ctma has both liars and share: it trims by number or by weight. Leave one of them out.")

    def tolerates(self, count: int) -> int:
        """f, or the share of so many, and not more than the anchor."""
        most = self.anchor.tolerates(count)
        if self.share is not UNSET:
            return min(most, int(self.share * count + 1e-9))
        return min(most, assumed_liars(self.liars, count, most))

    def check(self, count: int) -> None:
        """Refuse fewer vectors than the anchor needs, and more liars than it withstands."""
        if self.share is not UNSET:
            self.anchor.check(count)
            return
        liars = 1 if self.liars is UNSET else self.liars
        need_vectors("ctma", count, 2 * liars + 1, liars)
        self.anchor.check(count)
        if liars > self.anchor.tolerates(count):
            raise ConfigError(
                f"ctma.anchor withstands {self.anchor.tolerates(count)} liars among {count} updates; ctma is to "
                f"withstand {liars}. Use another anchor, merge more at once, or set `liars` lower."
            )

    def init(self, like: np.ndarray) -> Arrays:
        """The anchor's memory."""
        return self.anchor.init(like)

    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]:
        """The mean of those near the anchor's aggregate."""
        from asyncfed.kernels.distances import squared_distances  # loads numba
        from asyncfed.kernels.merge_workspace import merge_threads

        rows, shares, order = by_id(vectors, weights, ids)
        anchor, memory = self.anchor.aggregate(rows, shares, memory, np.arange(len(rows)))
        found = np.sqrt(squared_distances(rows, anchor.vector.astype(np.float64), merge_threads()))
        nearest = np.argsort(found, kind="stable")
        kept_rows = np.zeros(len(rows), bool)
        if self.share is UNSET:
            kept_rows[nearest[: len(rows) - self.tolerates(len(rows))]] = True
            if self.factor is not UNSET:
                kept_rows |= found <= self.factor * np.median(found)
        else:
            shares = _trim_weight(shares, nearest, self.share)
            kept_rows[:] = shares > 0
        kept, distances = np.empty_like(kept_rows), np.empty_like(found)
        kept[order], distances[order] = kept_rows, found
        return Aggregate(mean_of_kept(rows, shares, kept_rows), kept, distances), memory


def _trim_weight(weights: np.ndarray, nearest: np.ndarray, share: float) -> np.ndarray:
    """What is left of each weight: all of it until 1 - share is reached, then what is missing to it, then nothing."""
    left, kept = 1.0 - share, np.zeros_like(weights)
    for place in nearest.tolist():
        kept[place] = min(float(weights[place]), left)
        left -= kept[place]
        if left <= 1e-12:
            break
    return kept
