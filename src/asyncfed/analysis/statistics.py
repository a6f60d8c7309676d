"""The small statistics that reports need: intervals over seeds, and curves read as step functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record

LEVEL = 0.95


class Interval(Record):
    """A mean, the ends of its confidence interval (NaN below two values), and from how many values."""

    mean: float
    low: float
    high: float
    n: int


def t_quantile(n: int, level: float = LEVEL) -> float:
    """How many standard errors of n normal values reach from the mean to each end of the interval; n >= 2.

    >>> round(t_quantile(5), 3)
    2.776
    """
    if n < 2:
        raise ConfigError(f"a confidence interval needs at least 2 values, and there are {n}. Add seeds.")
    if not 0 < level < 1:
        raise ConfigError(f"the confidence level is {level}; it must be between 0 and 1, such as 0.95.")
    return _t_quantile(n - 1, level)


def _t_quantile(freedom: float, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2))


def mean_interval(values: Sequence[float] | np.ndarray, level: float = LEVEL) -> Interval:
    """The mean and its t interval, `mean +- t * s / sqrt(n)`. Values that are not finite are left out of `n`.

    >>> mean_interval([1.0, 2.0, 3.0]).mean
    2.0
    """
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    n = len(known)
    mean = float(known.mean()) if n else float("nan")
    if n < 2:
        return Interval(mean, float("nan"), float("nan"), n)
    reach = t_quantile(n, level) * float(known.std(ddof=1)) / n**0.5
    return Interval(mean, mean - reach, mean + reach, n)


def geometric_interval(values: Sequence[float] | np.ndarray, level: float = LEVEL) -> Interval:
    """The geometric mean and its interval: `mean_interval` of the logarithms, carried back.

    Values that are not positive and finite have no logarithm and are left out of `n`.

    >>> geometric_interval([1.0, 4.0]).mean
    2.0
    """
    of_logs = mean_interval(np.log(_positive(values)), level)
    mean, low, high = np.exp([of_logs.mean, of_logs.low, of_logs.high]).tolist()
    return Interval(mean, low, high, of_logs.n)


def independent_ratio(
    ones: Sequence[float] | np.ndarray, others: Sequence[float] | np.ndarray, level: float = LEVEL
) -> Interval:
    """The geometric mean of `ones` over that of `others`, which are not paired: Welch's interval on the logarithms.

    The standard error is √(s₁²/n₁ + s₂²/n₂), its degrees of freedom are Welch and Satterthwaite's. Values that are not
    positive and finite are left out; `n` is the smaller of both numbers.

    >>> round(independent_ratio([1.0, 4.0], [1.0, 1.0]).mean, 12)
    2.0
    """
    logs = [np.log(_positive(values)) for values in (ones, others)]
    n = min(len(values) for values in logs)
    mean = float(np.mean(logs[0]) - np.mean(logs[1])) if n else float("nan")
    if n < 2:
        return Interval(float(np.exp(mean)), float("nan"), float("nan"), n)
    parts = [float(values.var(ddof=1)) / len(values) for values in logs]
    error = sum(parts)
    freedom = error**2 / sum(part**2 / (len(v) - 1) for part, v in zip(parts, logs, strict=True)) if error else 1.0
    reach = _t_quantile(freedom, level) * error**0.5
    low, middle, high = np.exp([mean - reach, mean, mean + reach]).tolist()
    return Interval(middle, low, high, n)


def _positive(values: Sequence[float] | np.ndarray) -> np.ndarray:
    known = np.asarray(values, np.float64)
    return known[np.isfinite(known) & (known > 0)]


def step_values(x: np.ndarray, y: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The curve (x, y), x not falling, read at other places: what was last measured there or before.

    Before the first measurement and after the last there is nothing to read: NaN.

    >>> step_values(np.array([0.0, 2.0]), np.array([5.0, 1.0]), np.array([0.0, 1.9, 2.0, 3.0]))
    array([ 5.,  5.,  1., nan])
    """
    place = np.searchsorted(x, at, side="right") - 1
    known = (place >= 0) & (at <= x[-1]) if len(x) else np.zeros(len(at), bool)
    read = np.full(len(at), np.nan)
    read[known] = np.asarray(y, np.float64)[place[known]]
    return read


def shared_grid(curves: Sequence[np.ndarray], points: int) -> np.ndarray:
    """`points` places, evenly spaced in logarithm, from the first to the last positive x that all curves have.

    Empty if they share no such stretch.

    >>> shared_grid([np.array([0.0, 1.0, 100.0]), np.array([0.0, 0.5, 900.0])], 3)
    array([  1.,  10., 100.])
    """
    positive = [x[np.isfinite(x) & (x > 0)] for x in curves]
    if not positive or not all(len(x) for x in positive):
        return np.empty(0)
    first, last = max(float(x[0]) for x in positive), min(float(x[-1]) for x in positive)
    if first > last:
        return np.empty(0)
    grid = np.geomspace(first, last, points)
    grid[0], grid[-1] = first, last  # rounding must not push an end out of the stretch
    return grid


class Band(Record):
    """A mean curve and its confidence band, on a grid common to all seeds."""

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def geometric_band(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], points: int = 400) -> Band:
    """The geometric mean of several curves and its interval, place by place, where all of them have data.

    Places where a curve has no positive finite value are left out. With one curve the band has no width to speak of:
    `low` and `high` are NaN.
    """
    with np.errstate(invalid="ignore"):  # what is not positive is left out
        logs = [np.log(np.where(np.asarray(y) > 0, y, np.nan)) for y in ys]
    of_logs = mean_band(xs, logs, points)
    return Band(of_logs.x, np.exp(of_logs.mean), np.exp(of_logs.low), np.exp(of_logs.high))


def mean_band(xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], points: int = 400) -> Band:
    """The mean of several curves and its interval, place by place, where all of them have finite values."""
    grid = shared_grid(xs, points)
    read = np.array([step_values(x, y, grid) for x, y in zip(xs, ys, strict=True)])
    complete = np.isfinite(read).all(axis=0)
    grid, read = grid[complete], read[:, complete]
    mean = read.mean(axis=0)
    reach = np.full(len(grid), np.nan)
    if len(read) > 1:
        reach = t_quantile(len(read)) * read.std(axis=0, ddof=1) / len(read) ** 0.5
    return Band(grid, mean, mean - reach, mean + reach)
