"""What the strategies of a comparison have to reach: which metric, and how good it has to be."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import isfinite

import numpy as np

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.engine.stopping import rises as rises  # reports, which may not import engines, ask it too

PROGRESS = 0.95
"""The share of the way from the start to the best of any run that the default target asks for."""

NO_METRICS = frozenset({"updates", "version", "round", "elapsed"})
"""Columns of evaluations that say when, not how good."""


def choose_metric(measured: Collection[str], metric: str | None) -> str:
    """The metric that was asked for, or else the objective: what the strategies minimise.

    On few validation rows, the best of many runs is partly luck, and a target that comes from it too.

    Args:
        measured: what is measured at each evaluation.
        metric: a name; None for the default.

    Raises:
        ConfigError: nothing of this name is measured.
    """
    known = [name for name in measured if name not in NO_METRICS]
    metric = "objective" if metric is None else metric
    if metric not in known:
        held_out = " Hold rows out for it." if metric.startswith(("validation", "test")) else ""
        raise ConfigError(f'There is no metric "{metric}". {did_you_mean(metric, known)}{held_out}')
    return metric


def check_target(metric: str, target: float) -> None:
    """Refuse a target that no run could be compared by."""
    if rises(metric) and not 0 < target <= 1:
        raise ConfigError(f"target is {target}; {metric} is to rise, and the target lies above 0 and is at most 1.")
    if not (target > 0 and isfinite(target)):
        raise ConfigError(f"target is {target}; the {metric} to reach must be positive.")


def is_met(metric: str, values: np.ndarray, target: float) -> np.ndarray:
    """Where the values are as good as the target; never where they are not numbers."""
    return np.asarray(values >= target if rises(metric) else values <= target)


def progress_target(metric: str, curves: Iterable[np.ndarray]) -> float:
    """The start plus 95 % of the way from there to the best of any curve: `start - 0.95 (start - best)`.

    Args:
        metric: the metric's name, which says whether it is to fall or to rise.
        curves: its values in runs with the same start, without those that diverged.

    Returns:
        The target; NaN if no curve is better anywhere than at its start.

    >>> float(progress_target("objective", [np.array([10.0, 4.0]), np.array([10.0, 0.0])]))
    0.5
    """
    known = [curve[np.isfinite(curve)] for curve in curves]
    known = [curve for curve in known if len(curve)]
    if not known:
        return float("nan")
    start = float(known[0][0])
    best = float(max(map(np.max, known)) if rises(metric) else min(map(np.min, known)))
    return start - PROGRESS * (start - best) if best != start else float("nan")
