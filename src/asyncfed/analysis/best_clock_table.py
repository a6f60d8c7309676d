"""The time that no method can beat, for groups of clients and constants of a problem that somebody has written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.theory.time_complexity import (
    Counts,
    best_clock,
    convex_counts,
    nonconvex_counts,
    strongly_convex_counts,
)


class BestClockRow(NamedTuple):
    """One sort of problem: the seconds for clients with the same data and with different ones, and what is reached."""

    problem: str
    same_data: float
    different_data: float
    reached: str


def best_clock_rows(
    groups: Sequence[tuple[int, float]],
    smoothness: float,
    gradient_variance: float,
    target: float,
    start_gap: float | None = None,
    start_distance: float | None = None,
    strong_convexity: float | None = None,
) -> list[BestClockRow]:
    """A row for each sort of problem whose constants are given; see `asyncfed.theory.time_complexity`.

    Args:
        groups: how many clients take how many seconds for one gradient.
        smoothness: L, above 0.
        gradient_variance: sigma^2 of a stochastic gradient, 0 or more.
        target: the squared gradient of a problem that need not be convex, the objective gap of one that is; above 0.
        start_gap: F(x_0) - F*, above 0; for the nonconvex row.
        start_distance: |x_0 - x*|, above 0; for the convex row.
        strong_convexity: mu, above 0; for the strongly convex row.

    Returns:
        The rows.

    Raises:
        ConfigError: no row can be computed from what is given, or a constant is out of range.

    >>> [row] = best_clock_rows([(2, 1.0)], 2.0, 5.0, 0.5, start_gap=3.0)
    >>> row.problem, row.same_data  # 1 (12 + 120 / 2)
    ('nonconvex', 72.0)
    """
    given = {"start_gap": start_gap, "start_distance": start_distance}
    for name, value in given.items():
        if value is not None and not value > 0:
            raise ConfigError(f"{name} is {value}; it must be a positive number.")
    if not gradient_variance >= 0:
        raise ConfigError(f"gradient_variance is {gradient_variance}; it must be zero or a positive number.")
    counts: dict[str, tuple[Counts, str]] = {}
    shared = {"smoothness": smoothness, "gradient_variance": gradient_variance, "target": target}
    gap = f"the objective gap is {target:g}"
    if start_gap is not None:
        found = nonconvex_counts(start_gap=start_gap, **shared)
        counts["nonconvex"] = found, f"the squared gradient is {target:g}"
    if start_distance is not None:
        counts["convex"] = convex_counts(start_distance=start_distance, **shared), gap
    if strong_convexity is not None:
        counts["strongly convex"] = strongly_convex_counts(strong_convexity=strong_convexity, **shared), gap
    if not counts:
        raise ConfigError(
            "Nothing says what sort of problem it is. Give start_gap (any problem), start_distance (convex) or "
            "strong_convexity (strongly convex), or several of them."
        )
    times = np.repeat([seconds for _, seconds in groups], [count for count, _ in groups])
    return [
        BestClockRow(name, best_clock(times, each, "same"), best_clock(times, each, "different"), reached)
        for name, (each, reached) in counts.items()
    ]
