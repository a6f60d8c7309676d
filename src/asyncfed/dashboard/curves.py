"""The curves of a run: what was measured, against rounds, time, bytes and joules; thinned so that extremes stay."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.plain_numbers import as_list
from asyncfed.dashboard.run_view import RunView

AXES = ("round", "elapsed", "bytes", "energy", "updates")


def make_curves(view: RunView, points: int) -> dict[str, Any]:
    """Every metric at about so many of the measurements, at most twice as many."""
    with view.lock:
        axes = evaluation_axes(view)
        metrics = view.metrics()
    keep = thin(next(iter(metrics.values()), np.empty(0)), points)
    return {
        **{axis: as_list(axes[axis][keep]) for axis in AXES},
        "metrics": {name: as_list(values[keep]) for name, values in metrics.items()},
    }


def evaluation_axes(view: RunView) -> dict[str, np.ndarray]:
    """Where each measurement lies on each axis. Bytes and joules are those of the last round that was over by then."""
    rounds = view.evaluation_column("round")
    axes = {name: view.evaluation_column(name) for name in ("round", "elapsed", "updates")}
    closed = view.round_column("round")
    place = np.searchsorted(closed, rounds, side="right")  # 0: before the first round was over
    for axis, columns in (("bytes", ("bytes_down", "bytes_up")), ("energy", ("energy",))):
        total = np.sum([view.round_column(name) for name in columns], axis=0)
        axes[axis] = np.concatenate([[0.0], total])[place]
    return axes


def thin(values: np.ndarray, points: int) -> np.ndarray:
    """Places of values to keep: the first, the last, and the smallest and largest of each of `points` parts.

    >>> thin(np.array([0.0, 5.0, 1.0, 1.0, 1.0, 1.0]), 2).tolist()
    [0, 1, 3, 5]
    """
    count = len(values)
    if count <= 2 * points:
        return np.arange(count)
    bounds = np.linspace(0, count, points + 1).astype(np.int64)
    known = np.where(np.isfinite(values), values, np.nan)
    kept = {0, count - 1}
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = known[first:last]
        if np.isnan(part).all():
            kept.add(first)
        else:
            kept |= {first + int(np.nanargmin(part)), first + int(np.nanargmax(part))}
    return np.array(sorted(kept))
