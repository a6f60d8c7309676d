"""Krum and multi-Krum: the vectors that lie closest to their nearest neighbours."""

from __future__ import annotations

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.registry import register
from asyncfed.rules.aggregators.average import mean_of_kept
from asyncfed.rules.aggregators.protocol import (
    Aggregate,
    Memoryless,
    assumed_liars,
    by_id,
    check_liars,
    need_vectors,
)
from asyncfed.rules.protocol import Arrays


class Neighbourly(Memoryless, Config):
    """What Krum and multi-Krum share: how many liars, and the scores.

    Args:
        liars: f.
    """

    liars: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        check_liars(self._name, self.liars)

    @property
    def _name(self) -> str:
        return str(self.__struct_config__.tag)  # type: ignore[attr-defined]

    def tolerates(self, count: int) -> int:
        """f."""
        most = max(0, (count - 3) // 2)
        return min(most, assumed_liars(self.liars, count, most))

    def check(self, count: int) -> None:
        """Refuse fewer than 2f + 3 vectors."""
        liars = 1 if self.liars is UNSET else self.liars
        need_vectors(self._name, count, 2 * liars + 3, liars)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """The sum of the squared distances of each to its k - f - 2 nearest neighbours."""
        from asyncfed.kernels.distances import pairwise_squared_distances  # loads numba
        from asyncfed.kernels.merge_workspace import merge_threads

        squares = pairwise_squared_distances(rows, merge_threads())
        np.fill_diagonal(squares, np.inf)
        nearest = np.sort(squares, axis=1)[:, : len(rows) - self.tolerates(len(rows)) - 2]
        total = np.zeros(len(rows))
        for column in nearest.T:
            total += column
        return total


@register("aggregator")
class Krum(Neighbourly, tag_field="kind", tag="krum"):
    """Krum: the one vector with the least sum of squared distances to its k - f - 2 nearest neighbours.

        a = v_m,   m = argmin_i sum_(j in N_i) |v_i - v_j|^2,     N_i: the k - f - 2 nearest to v_i

    Weights do not matter; of equal scores, the smallest id. All updates but one are thrown away, liars or not, so that
    nobody is judged: `MultiKrum` keeps more, and says whom it filters.

    Args:
        liars: f; fewer than 2f + 3 vectors are refused. Left out: a third of the vectors, rounded up, at most
            (k - 3) / 2; then at least 5 vectors are needed, which withstand 1.

    >>> Krum().tolerates(10)
    3

    Blanchard et al., "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent", NeurIPS 2017.
    """

    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]:
        """The vector with the least score."""
        rows, _, order = by_id(vectors, weights, ids)
        found = self.scores(rows)
        scores = np.empty_like(found)
        scores[order] = found
        return Aggregate(rows[int(found.argmin())].copy(), None, scores), memory


@register("aggregator")
class MultiKrum(Neighbourly, tag_field="kind", tag="multi_krum"):
    """Multi-Krum: the weighted mean of the m vectors with the least scores of Krum.

        a = sum_(i in M) w_i v_i / sum_(i in M) w_i,     M: the m least of  s_i = sum_(j in N_i) |v_i - v_j|^2

    Of equal scores, the smaller ids are kept. Who is not is filtered, with s_i as the score. f = 0 keeps all: the mean.

    Args:
        liars: f; fewer than 2f + 3 vectors are refused. Left out: a third of the vectors, rounded up, at most
            (k - 3) / 2; then at least 5 vectors are needed, which withstand 1.
        keep: m, 1 or more, at most k - f; left out, k - f. The paper's guarantee is for at most k - f - 2.

    >>> MultiKrum(liars=2, keep=9).check(10)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: multi_krum.keep is 9, but of 10 updates with 2 liars at most 8 can be kept.

    Blanchard et al., "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent", NeurIPS 2017.
    """

    keep: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep is not UNSET and self.keep < 1:
            raise ConfigError(f"multi_krum.keep is {self.keep}; it must be at least 1, or left out.")

    def check(self, count: int) -> None:
        """Refuse fewer than 2f + 3 vectors, and to keep more than k - f."""
        super().check(count)
        liars = self.tolerates(count)
        if self.keep is not UNSET and self.keep > count - liars:
            raise ConfigError(
                f"multi_krum.keep is {self.keep}, but of {count} updates with {liars} liars at most {count - liars} "
                "can be kept."
            )

    def aggregate(
        self, vectors: np.ndarray, weights: np.ndarray, memory: Arrays, ids: np.ndarray
    ) -> tuple[Aggregate, Arrays]:
        """The mean of those kept."""
        rows, shares, order = by_id(vectors, weights, ids)
        found = self.scores(rows)
        kept_rows = np.zeros(len(rows), bool)
        kept_rows[np.argsort(found, kind="stable")[: self._keep(len(rows))]] = True
        kept, scores = np.empty_like(kept_rows), np.empty_like(found)
        kept[order], scores[order] = kept_rows, found
        return Aggregate(mean_of_kept(rows, shares, kept_rows), kept, scores), memory

    def _keep(self, count: int) -> int:
        return count - self.tolerates(count) if self.keep is UNSET else self.keep
