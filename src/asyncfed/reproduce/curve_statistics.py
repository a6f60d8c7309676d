"""The statistics behind the verdicts: numbers of curves, paired over seeds, and what an interval lets one say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from asyncfed.analysis.statistics import Interval
from asyncfed.reproduce.curves import Curve

Verdict = Literal["holds", "holds per round but not in time", "does not hold", "undecided"]
SMOOTHING = 10
SLACK = 1.1
"""What the loss that both of two runs reach allows on the worse one's best, so that noise does not decide."""


def below(interval: Interval, limit: float) -> Verdict:
    """Whether what the interval is about lies below the limit: decided only if the whole interval is on one side.

    >>> below(Interval(0.5, 0.4, 0.6, 5), 1.0), below(Interval(0.5, 0.4, 1.6, 5), 1.0)
    ('holds', 'undecided')
    """
    if interval.high < limit:
        return "holds"
    return "does not hold" if interval.low >= limit else "undecided"


def above(interval: Interval, limit: float) -> Verdict:
    """The mirror image of `below`."""
    if interval.low > limit:
        return "holds"
    return "does not hold" if interval.high <= limit else "undecided"


def compare_speed(per_round: Interval, in_time: Interval) -> Verdict:
    """Whether one is faster than another, from the ratios of what they need: below 1 is faster."""
    verdict = below(per_round, 1.0)
    if verdict == "holds" and below(in_time, 1.0) != "holds":
        return "holds per round but not in time"
    return verdict


def cost_ratios(ones: Sequence[Curve], others: Sequence[Curve]) -> np.ndarray:
    """Seed by seed, what `one` needs to reach a loss that both reach, over what `other` needs.

    The loss is `SLACK * max(best of one, best of other)`. x is the cost: rounds or seconds.
    """
    ratios = []
    for one, other in zip(ones, others, strict=True):
        target = SLACK * max(float(one.y.min()), float(other.y.min()))
        ratios.append(_first_below(one, target) / _first_below(other, target))
    return np.array(ratios)


def _first_below(curve: Curve, target: float) -> float:
    return float(curve.x[np.flatnonzero(curve.y <= target)[0]])


def variability(loss: np.ndarray) -> float:
    """The typical relative change from round to round: the standard deviation of `diff(log loss)`.

    >>> round(variability(np.array([8.0, 4.0, 2.0, 1.0])), 12)
    0.0
    """
    return float(np.std(np.diff(np.log(loss))))


def late_variability(loss: np.ndarray) -> float:
    """The variability of the second half of a run."""
    return variability(second_half(loss))


def growth_of_variability(loss: np.ndarray) -> float:
    """The variability of the last quarter of a run over that of its second quarter."""
    quarter = len(loss) // 4
    return variability(loss[-quarter:]) / variability(loss[quarter : 2 * quarter])


def second_half(loss: np.ndarray) -> np.ndarray:
    """The losses of the second half of the rounds."""
    return loss[len(loss) // 2 :]


def linearity(y: np.ndarray) -> float:
    """R^2 of the straight line fitted to y against 1, 2, ...

    >>> linearity(np.array([1.0, 2.0, 3.0]))
    1.0
    """
    correlation = np.corrcoef(np.arange(len(y)), y)[0, 1]
    return float(f"{correlation**2:.12g}")


def smoothed(y: np.ndarray) -> np.ndarray:
    """The mean over a window of ten rounds, or of a tenth of a short curve."""
    window = max(1, min(SMOOTHING, len(y) // 10))
    return np.convolve(y, np.full(window, 1.0 / window), mode="valid")


def matching_round(one: np.ndarray, other: np.ndarray, slack: float = SLACK) -> float:
    """The first round from which `one`, smoothed, stays at or below `slack` times `other`; NaN if it ends above.

    >>> matching_round(np.array([9.0, 5.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    3.0
    """
    apart = np.flatnonzero(smoothed(one) > slack * smoothed(other))
    window = max(1, min(SMOOTHING, len(one) // 10))
    if len(apart) == 0:
        return 1.0
    matched = int(apart[-1]) + 1
    return float("nan") if matched + window > len(one) else float(matched + window)
