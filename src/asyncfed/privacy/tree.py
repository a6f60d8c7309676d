"""What a client loses in a tree of releases (DP-FTRL), which noises prefix sums instead of single ones.

A tree over T releases has a node for every 2^h releases in a row that begin at a multiple of 2^h. Each node has noise
of its own, N(0, (z C)^2), and a prefix sum uses at most log2(T) + 1 nodes, so its noise hardly grows with T. A client
that takes part at the releases R moves the tree by C times the root of

    S(R) = sum over nodes of (how often the node's releases are in R)^2

The sensitivity S is its largest value over all R of at most k releases with at least b others between any two of them.
The tree then hides the client as well as a shift of mu = sqrt(S) / z; see `privacy/gaussian.py`.

Kairouz et al., "Practical and Private (Deep) Learning without Sampling or Shuffling", ICML 2021 (arXiv:2103.00039),
appendix D; zCDP: Bun & Steinke, "Concentrated Differential Privacy", TCC 2016.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, pairwise
from math import ceil, inf, log, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.privacy.gaussian import check_delta, epsilon_of_shift, shift_for

Placements: TypeAlias = dict[int, NDArray[np.float64]]
"""By how often a client takes part: the largest S within some releases in a row, as a table of `start` and `end`. The
first `start` of them are barred by what was before; what comes after may begin `end` releases after them."""

MOST_STEPS = 2e8
"""Of the exact computation, in sums of two numbers; beyond it the bound is used."""


@lru_cache(maxsize=256)
def tree_sensitivity(releases: int, participations: int, separation: int) -> float:
    """S, exactly where that is quick, and otherwise `tree_sensitivity_bound`, which is not smaller.

    Args:
        releases: T, 1 or more.
        participations: k, 1 or more: how often a client takes part at most.
        separation: b, 0 or more: so many releases at least are between two in which it takes part.

    >>> tree_sensitivity(releases=24, participations=8, separation=2)
    88.0
    """
    check_tree(releases, participations, separation)
    most = min(participations, ceil(releases / (separation + 1)))
    if releases.bit_length() * most**2 * (separation + 1.0) ** 3 > MOST_STEPS:
        return tree_sensitivity_bound(releases, participations, separation)
    forest: Placements | None = None
    for height in reversed(range(releases.bit_length())):
        if releases >> height & 1:
            tree = _complete_tree(height, most, separation)
            forest = tree if forest is None else _side_by_side(forest, tree, most)
    assert forest is not None
    return float(max(table[0, separation] for count, table in forest.items() if count))


def tree_sensitivity_bound(releases: int, participations: int, separation: int) -> float:
    """A bound on S without a search: a node of 2^h releases counts a client at most ceil(2^h / (b + 1)) times.

    S <= sum_h k min(k, ceil(2^h / (b + 1)))
    """
    most = min(participations, ceil(releases / (separation + 1)))
    return float(sum(most * min(most, ceil(2**h / (separation + 1))) for h in range(releases.bit_length())))


def tree_sensitivity_by_search(releases: int, participations: int, separation: int) -> float:
    """S by trying every placement: the slow, readable twin of `tree_sensitivity`, for a few releases."""
    largest = 0
    for count in range(1, participations + 1):
        for placed in combinations(range(releases), count):
            if all(after - before > separation for before, after in pairwise(placed)):
                largest = max(largest, sum(sum(r in node for r in placed) ** 2 for node in _nodes(releases)))
    return float(largest)


def epsilon_of_tree(multiplier: float, releases: int, participations: int, separation: int, delta: float) -> float:
    """The epsilon of a client in a tree of releases.

    Args:
        multiplier: z, a node's noise in clips, above 0.
        releases: T, 1 or more.
        participations: k, 0 or more; without any, nothing is lost.
        separation: b, 0 or more.
        delta: above 0 and below 1.

    >>> round(epsilon_of_tree(8.83, releases=1600, participations=1, separation=0, delta=1e-6), 4)
    1.6487
    """
    check_delta(delta)
    if participations == 0:
        return 0.0
    if not 0 < multiplier < inf:
        raise ConfigError(f"the noise multiplier is {multiplier}; without noise nothing is hidden. Make it positive.")
    return epsilon_of_shift(sqrt(tree_sensitivity(releases, participations, separation)) / multiplier, delta)


def tree_multiplier_for(epsilon: float, releases: int, participations: int, separation: int, delta: float) -> float:
    """The noise multiplier z of a node with which a client loses this epsilon in a tree of releases."""
    return sqrt(tree_sensitivity(releases, participations, separation)) / shift_for(epsilon, delta)


def zcdp_of_tree(multiplier: float, releases: int, participations: int, separation: int) -> float:
    """rho of zero-concentrated differential privacy: S / (2 z^2)."""
    return tree_sensitivity(releases, participations, separation) / (2.0 * multiplier**2)


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The epsilon that follows from rho-zCDP alone: rho + 2 sqrt(rho log(1/delta)), which is not the smallest."""
    check_delta(delta)
    return rho + 2.0 * sqrt(rho * log(1.0 / delta))


def check_tree(releases: int, participations: int, separation: int) -> None:
    """Refuse numbers that describe no tree."""
    for name, value, least in (
        ("releases", releases, 1), ("participations", participations, 1), ("separation", separation, 0)
    ):  # fmt: skip
        if value < least:
            raise ConfigError(f"{name} is {value}; it must be at least {least}.")


def _nodes(releases: int) -> list[range]:
    """The nodes of the tree: every complete run of 2^h releases."""
    heights = range(releases.bit_length())
    return [range(first, first + 2**h) for h in heights for first in range(0, releases - 2**h + 1, 2**h)]


def _complete_tree(height: int, most: int, separation: int) -> Placements:
    """Of 2^height releases with all nodes above them."""
    size, gap = 2**height, separation + 1
    if size <= gap:  # room for one: it is in a node of every height
        return {m: np.where(_possible(m, size, separation), m * (height + 1.0), -inf) for m in range(2)}
    half = _complete_tree(height - 1, most, separation)
    return {m: table + m * m for m, table in _side_by_side(half, half, most).items()}


def _side_by_side(left: Placements, right: Placements, most: int) -> Placements:
    """Of releases that follow each other, without a node above both."""
    both: Placements = {}
    for i, before in left.items():
        for j, after in right.items():
            if i + j <= most:
                best = np.max(before[:, :, None] + after[None, :, :], axis=1)
                both[i + j] = best if i + j not in both else np.maximum(both[i + j], best)
    return both


def _possible(count: int, size: int, separation: int) -> NDArray[np.bool_]:
    """Whether so many fit, by `start` and `end`."""
    offset = np.arange(separation + 1)
    return offset[:, None] + count * (separation + 1) <= size + offset[None, :]
