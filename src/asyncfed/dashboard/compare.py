"""Runs against each other: one metric of each, on the same axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asyncfed.dashboard.curves import evaluation_axes, thin
from asyncfed.dashboard.plain_numbers import as_list
from asyncfed.dashboard.run_view import RunView
from asyncfed.report.strategy_label import strategy_label

COMPARED_AXES = ("round", "elapsed", "bytes", "energy")
POINTS = 300
MOST_COMPARED = 20


def make_comparison(views: Sequence[RunView], axis: str, metric: str) -> dict[str, Any]:
    """A curve for each run that has this metric."""
    return {"axis": axis, "metric": metric, "runs": [_curve(view, axis, metric) for view in views]}


def _curve(view: RunView, axis: str, metric: str) -> dict[str, Any]:
    with view.lock:
        values = view.metrics().get(metric)
        x = evaluation_axes(view)[axis]
        experiment = view.header["experiment"]
    label = f"{experiment.get('name', '')} · {strategy_label(experiment['strategy'])} · {view.path.stem}"
    if values is None:
        return {"id": view.name, "label": label, "x": [], "y": []}
    kept = thin(values, POINTS)
    return {"id": view.name, "label": label, "x": as_list(x[kept]), "y": as_list(values[kept])}
