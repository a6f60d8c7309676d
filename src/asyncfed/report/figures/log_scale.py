"""What a logarithmic axis shows of values that may be gaps, negative, or run off to infinity."""

from __future__ import annotations

import numpy as np

MOST_DECADES = 8


def log_limits(values: np.ndarray) -> tuple[float, float] | None:
    """The smallest and the largest positive value, at most so many decades apart; None if nothing is positive.

    >>> log_limits(np.array([0.5, -1.0, np.nan, 1e300])), log_limits(np.zeros(2))
    ((0.5, 50000000.0), None)
    """
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive):
        return None
    low = float(positive.min())
    return low, min(float(positive.max()), low * 10**MOST_DECADES)
