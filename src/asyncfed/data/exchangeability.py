"""Distances of clients from the pool, and their permutation test: would random owners be as far?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

NUM_PERMUTATIONS = 499

Distance: TypeAlias = Callable[[np.ndarray], float]


def permutation_test(distance: Distance, owners: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """The distance, its mean when owners are shuffled (sizes kept), and `p = (1 + #{as far}) / (1 + shuffles)`."""
    observed = distance(owners)
    shuffled = np.array([distance(rng.permutation(owners)) for _ in range(NUM_PERMUTATIONS)])
    # Equal distances may differ in their last bit, and must count as equally far.
    as_far = int(np.count_nonzero(shuffled >= observed - 1e-12))
    return observed, float(shuffled.mean()), (1 + as_far) / (1 + NUM_PERMUTATIONS)


def total_variation(positive: np.ndarray, sizes: np.ndarray) -> Distance:
    """`sum_c (n_c / n) |P_c(+1) - P(+1)|`: total variation between label distributions, averaged over rows."""
    pooled = positive.mean()

    def distance(owners: np.ndarray) -> float:
        shares = np.bincount(owners, weights=positive, minlength=len(sizes)) / sizes
        return float(np.abs(shares - pooled) @ sizes / sizes.sum())

    return distance


def kolmogorov_smirnov(values: np.ndarray, sizes: np.ndarray) -> Distance:
    """`sum_c (n_c / n) sup_t |F_c(t) - F(t)|`: the Kolmogorov-Smirnov distance to the pool, averaged over rows.

    The supremum is met at one of the client's own values or just before it, so with a client's m values in order it is
    the largest of `i/m - F(v_i)` and `F(v_i -) - (i-1)/m`; ties only repeat smaller ones.
    """
    larger = values > values.min()
    if bool((values[larger] == values.max()).all()):
        return total_variation(larger, sizes)  # of two values the same number, without sorting
    by_value = np.argsort(values, kind="stable")
    ordered = values[by_value]
    up_to = np.searchsorted(ordered, ordered, side="right") / len(values)
    below = np.searchsorted(ordered, ordered, side="left") / len(values)
    starts = np.cumsum(sizes) - sizes
    before = (np.arange(len(values)) - np.repeat(starts, sizes)) / np.repeat(sizes, sizes)
    upto_own = before + 1 / np.repeat(sizes, sizes)

    def distance(owners: np.ndarray) -> float:
        by_client = np.argsort(owners[by_value], kind="stable")
        gaps = np.maximum(upto_own - up_to[by_client], below[by_client] - before)
        return float(np.maximum.reduceat(gaps, starts) @ sizes / sizes.sum())

    return distance


def mean_distance(distances: list[Distance]) -> Distance:
    """The mean of several distances under the same owners."""
    return lambda owners: float(np.mean([distance(owners) for distance in distances]))
