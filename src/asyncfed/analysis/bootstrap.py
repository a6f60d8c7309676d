"""How certain a mean over a client's rows is, by drawing the rows again."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from asyncfed.core.random import draw_key, purpose_key

RESAMPLES = 1000
MOST_RESAMPLED = 2000
"""Of more rows, the interval is the normal one, to which the bootstrap's tends."""

LOW, HIGH = 2.5, 97.5
NORMAL_QUANTILE = 1.959963984540054


def mean_intervals(values: np.ndarray, offsets: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of each client's mean: the percentiles of the means of rows drawn with replacement.

    Of few rows they are too narrow: of two, they are the rows themselves, which the true mean lies between half of the
    time. Both ends are therefore moved away from the mean by Student's t against the normal quantile,

        √(n / (n − 1)) t(n − 1) / z,

    which is 9.2 for 2 rows, 1.4 for 5, 1.1 for 20, and tends to 1.

    Args:
        values: one number a row, (n,); client c has `values[offsets[c]:offsets[c + 1]]`.
        offsets: shape (C + 1,).
        seed: of the draws, 0 or more.

    Returns:
        The lower and the upper ends, (C,) each; NaN for a client with fewer than two rows.
    """
    clients = len(offsets) - 1
    low, high = np.full(clients, np.nan), np.full(clients, np.nan)
    key = purpose_key(seed, "bootstrap")
    for client in range(clients):
        own = values[offsets[client] : offsets[client + 1]]
        if len(own) < 2:
            continue
        if len(own) > MOST_RESAMPLED:
            reach = NORMAL_QUANTILE * float(own.std(ddof=1)) / len(own) ** 0.5
            low[client], high[client] = own.mean() - reach, own.mean() + reach
            continue
        generator = np.random.Generator(np.random.Philox(key=draw_key(key, client, 0)))
        drawn = own[generator.integers(len(own), size=(RESAMPLES, len(own)))].mean(axis=1)
        ends = np.percentile(drawn, [LOW, HIGH])
        low[client], high[client] = own.mean() + _small_sample_factor(len(own)) * (ends - own.mean())
    return low, high


def _small_sample_factor(rows: int) -> float:
    """By how much the percentiles are too close to the mean, for 2 rows or more."""
    quantile = float(stdtrit(rows - 1, HIGH / 100))
    widening: float = (rows / (rows - 1)) ** 0.5 * quantile / NORMAL_QUANTILE
    return widening
