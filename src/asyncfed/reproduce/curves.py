"""Curves over seeds: a column of the finished runs against an axis, with the band that is drawn around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from asyncfed.analysis.comparison_runs import Outcome
from asyncfed.analysis.protocols import Axis
from asyncfed.analysis.statistics import geometric_band, t_quantile
from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.report.figures.figure_data import Series

DENSE_ROUNDS = 100
SPARSE_STEP = 5
DIGITS = 6
TIME_POINTS = 200
AXES: tuple[Axis, ...] = ("round", "elapsed", "bytes", "energy")


class Curve(NamedTuple):
    """A column of one run after each round, from round 1 on."""

    x: np.ndarray
    y: np.ndarray


def curve_of(outcome: Outcome, column: str, x: str = "round", scale: float = 1.0) -> Curve:
    """The column, of the evaluations or else of the rounds, against one of `AXES`."""
    axis = next((known for known in AXES if known == x), None)
    if axis is None:
        raise ConfigError(f'There is no axis "{x}". {did_you_mean(x, AXES)}')
    if column in outcome.evaluations and column not in outcome.rounds:
        return Curve(outcome.positions(axis)[1:], outcome.evaluations[column][1:] * scale)
    if column not in outcome.rounds:
        known = [*outcome.evaluations, *outcome.rounds]
        raise ConfigError(f'A run has no column "{column}". {did_you_mean(column, known)}')
    return Curve(outcome.rounds["round" if axis == "round" else "elapsed"], outcome.rounds[column] * scale)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The arithmetic mean of curves of the same seed, round by round: how the paper averages over client fractions."""
    length = min(len(curve.y) for curve in curves)
    return Curve(*(np.mean([part[:length] for part in parts], axis=0) for parts in zip(*curves, strict=True)))


def shown_rounds(count: int) -> np.ndarray:
    """Which of `count` rounds are drawn (from 0): all of the first hundred, then each fifth, and the last.

    >>> [int(index) + 1 for index in shown_rounds(112)[-4:]]
    [100, 105, 110, 112]
    """
    numbers = np.arange(1, count + 1)
    kept = (numbers <= DENSE_ROUNDS) | (numbers % SPARSE_STEP == 0) | (numbers == count)
    return np.asarray(numbers[kept] - 1)


def drawn(values: np.ndarray | Sequence[float]) -> tuple[float | None, ...]:
    """Numbers as they are stored in a figure: six digits, None for what is not a number.

    >>> drawn([1 / 3, float("nan")])
    (0.333333, None)
    """
    return tuple(float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in np.asarray(values, np.float64).tolist())


def places(values: np.ndarray | Sequence[float]) -> tuple[float, ...]:
    """The same for places on an axis, which are always numbers."""
    return tuple(float(f"{v:.{DIGITS}g}") for v in np.asarray(values, np.float64).tolist())


class Spread(NamedTuple):
    """A middle and its band, place by place."""

    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


def spread_over_seeds(of_seeds: np.ndarray, band: Literal["interval", "range"]) -> Spread:
    """Over the rows: the geometric mean and its 95 % interval, or the mean and the smallest and largest value.

    One seed has no interval (NaN). Where a value is missing, or has no logarithm, there is no middle either.
    """
    if band == "range":
        return Spread(of_seeds.mean(axis=0), of_seeds.min(axis=0), of_seeds.max(axis=0))
    logs = np.log(np.where(of_seeds > 0, of_seeds, np.nan))
    middle = logs.mean(axis=0)
    reach = np.full_like(middle, np.nan)
    if len(logs) > 1:
        reach = t_quantile(len(logs)) * logs.std(axis=0, ddof=1) / len(logs) ** 0.5
    return Spread(np.exp(middle), np.exp(middle - reach), np.exp(middle + reach))


def series_of(
    curves: Sequence[Curve],
    label: str,
    x: str = "round",
    band: Literal["interval", "range"] = "interval",
    group: str = "",
    emphasis: bool = False,
) -> Series:
    """One line over the seeds' curves. Off the round axis, seeds are read on a grid they share."""
    if x == "round":
        length = min(len(curve.y) for curve in curves)
        kept = shown_rounds(length)
        at = curves[0].x[kept]
        found = spread_over_seeds(np.array([curve.y[kept] for curve in curves]), band)
    else:
        shared = geometric_band([curve.x for curve in curves], [curve.y for curve in curves], TIME_POINTS)
        at, found = shared.x, Spread(shared.mean, shared.low, shared.high)
    return Series(
        label=label,
        x=places(at),
        y=drawn(found.middle),
        low=drawn(found.low) if len(curves) > 1 else (),
        high=drawn(found.high) if len(curves) > 1 else (),
        group=group or label,
        emphasis=emphasis,
    )
