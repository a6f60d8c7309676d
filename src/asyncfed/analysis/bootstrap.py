"""How certain a mean over a client's rows is, by drawing the rows again."""

from __future__ import annotations

import numpy as np

from asyncfed.core.random import draw_key, purpose_key

RESAMPLES = 1000
MOST_RESAMPLED = 2000
"""Of more rows, the interval is the normal one, to which the bootstrap's tends."""

LOW, HIGH = 2.5, 97.5
NORMAL_QUANTILE = 1.959963984540054


def mean_intervals(values: np.ndarray, offsets: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of each client's mean: the percentiles of the means of rows drawn with replacement.

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
        low[client], high[client] = np.percentile(drawn, [LOW, HIGH])
    return low, high
