"""Ranks in a cell, and which strategies cannot be told apart.

Strategies are ordered by the mean logarithm of what the target cost, over seeds. The first is compared with all behind
it by paired t-tests on the logarithms, seed by seed, corrected by Holm's method; those that do not differ from it make
its group. The first of the others leads the next group, and so on.

Reference: Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 1979.
Over cells, mean ranks differ if their distance exceeds Nemenyi's critical difference: Demšar, "Statistical Comparisons
of Classifiers over Multiple Data Sets", JMLR 2006.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from asyncfed.core.record import Record

ALPHA = 0.05


class Standing(Record):
    """A strategy's place in a cell.

    Args:
        rank: 1 for the best; those that never reached the target share the mean of their ranks.
        group: 1 for those that cannot be told from the best; None for those that never reached the target.
    """

    rank: float
    group: int | None


def rank_strategies(logs: Mapping[str, np.ndarray], reached: Mapping[str, int]) -> dict[str, Standing]:
    """The place of each strategy.

    Args:
        logs: the logarithm of the cost by strategy, one value a seed, in the same order of seeds; a run that missed the
            target counts with what is at least as much as any that reached it.
        reached: how many of its runs reached the target.

    Returns:
        The places, the best first.
    """
    order = sorted(logs, key=lambda name: (reached[name] == 0, float(np.mean(logs[name])), name))
    some = [name for name in order if reached[name]]
    group_of = _groups([logs[name] for name in some])
    means = [float(np.mean(logs[name])) for name in some]
    ranks = _mean_ranks(means) + [(len(some) + 1 + len(order)) / 2] * (len(order) - len(some))
    groups = [*group_of, *[None] * (len(order) - len(some))]
    return {name: Standing(rank, group) for name, rank, group in zip(order, ranks, groups, strict=True)}


def _groups(logs: Sequence[np.ndarray]) -> list[int]:
    """The group of each, the best first."""
    groups, left, number = [0] * len(logs), list(range(len(logs))), 0
    while left:
        number += 1
        leader, *others = left
        p_values = [paired_p_value(logs[other] - logs[leader]) for other in others]
        differs = holm(p_values, ALPHA)
        groups[leader] = number
        for other, different in zip(others, differs, strict=True):
            if not different:
                groups[other] = number
        left = [other for other, different in zip(others, differs, strict=True) if different]
    return groups


def paired_p_value(differences: np.ndarray) -> float:
    """The two-sided p-value of Student's t-test that the mean of these is 0; 1 for a single one.

    >>> paired_p_value(np.array([1.0, 1.0, 1.0])), paired_p_value(np.array([0.0, 0.0]))
    (0.0, 1.0)
    """
    count = len(differences)
    if count < 2:
        return 1.0
    mean, spread = float(np.mean(differences)), float(np.std(differences, ddof=1))
    if spread <= 1e-12 * max(1.0, abs(mean)):
        return 0.0 if abs(mean) > 1e-12 else 1.0
    from scipy.special import stdtr

    return float(2 * stdtr(count - 1, -abs(mean) / (spread / count**0.5)))


def holm(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Which hypotheses are rejected, so that with probability 1 - alpha no true one is.

    >>> holm([0.04, 0.01, 0.03], 0.05)
    [False, True, False]
    """
    rejected = [False] * len(p_values)
    for done, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[place] > alpha / (len(p_values) - done):
            break
        rejected[place] = True
    return rejected


def _mean_ranks(values: Sequence[float]) -> list[float]:
    """Ranks of rising values, from 1; equal ones share the mean of theirs."""
    return [
        (sum(other < value for other in values) + sum(other <= value for other in values) + 1) / 2 for value in values
    ]


def nemenyi_factor(count: int) -> float:
    """What the critical difference of mean ranks of `count` strategies is over one cell; over N it is by √N smaller.

        q √(k (k + 1) / 6),   q being the studentized range's quantile at 5 %, over √2

    >>> round(nemenyi_factor(4) / 5**0.5, 3)
    2.098
    """
    if count < 2:
        return 0.0
    from scipy.stats import studentized_range

    quantile = float(studentized_range.ppf(1 - ALPHA, count, np.inf)) / 2**0.5
    return float(quantile * (count * (count + 1) / 6) ** 0.5)
