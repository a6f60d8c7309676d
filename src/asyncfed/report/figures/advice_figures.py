"""The figures of a recommendation: what settings cost in several respects, and how the finalists learnt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.advice.recommendation import Recommendation, SearchPoint
from asyncfed.analysis.statistics import geometric_band
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.units import choose_scale

FRONT = "not dominated"
CURVE_POINTS = 120


def pareto_figure(advice: Recommendation) -> FigureData:
    """Time against bytes, energy and the loss of the worst clients: a point for each of the search's best settings."""
    points = advice.points
    bytes_scale = choose_scale("bytes", max((p.bytes for p in points), default=1.0))
    energy_scale = choose_scale("energy", max((p.energy for p in points), default=1.0))
    panels = [
        _panel("Time and bytes", bytes_scale.label, points, [p.bytes / bytes_scale.divisor for p in points]),
        _panel("Time and energy", energy_scale.label, points, [p.energy / energy_scale.divisor for p in points]),
    ]
    known = [p for p in points if p.worst_loss is not None]
    if known:
        worst = [p.worst_loss for p in known if p.worst_loss is not None]
        panels.append(_panel("Time and the worst clients", "loss of the worst tenth of the clients", known, worst))
    return FigureData(
        name="pareto",
        title="What the target costs",
        caption=(
            f"Settings that the search simulated to the end and that reached the target with all its seeds; means over "
            f'seeds. "{FRONT}" marks those for which no other is better in both respects. Less is better on both axes.'
        ),
        panels=tuple(panels),
    )


def finalists_figure(advice: Recommendation) -> FigureData:
    """The metric of each finalist against virtual time, geometric means over the fresh seeds with their band."""
    series = []
    for label in advice.ranking:
        runs = [advice.finalists[label].runs[seed] for seed in advice.seeds]
        xs = [np.array(run.elapsed) for run in runs]
        band = geometric_band(xs, [run.known_losses for run in runs], CURVE_POINTS)
        low, high = (tuple(v if np.isfinite(v) else None for v in ends.tolist()) for ends in (band.low, band.high))
        series.append(Series(label, tuple(band.x.tolist()), tuple(band.mean.tolist()), low, high))
    ends = [line.x for line in series if line.x]
    if ends:
        level, first, last = advice.target.level, min(x[0] for x in ends), max(x[-1] for x in ends)
        series.append(Series("target", (first, last), (level, level)))
    metric = advice.target.metric.replace("_", " ")
    return FigureData(
        name="finalists",
        title="How the finalists learn",
        caption=f"{metric} on seeds that the search has not seen; the band is the 95 % interval of the mean.",
        panels=(Panel(metric, "virtual time, s", metric, tuple(series), x_log=True, y_log=True),),
    )


def not_dominated(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """The places of points for which no other is at most as large in both and smaller in one, by their x.

    >>> not_dominated([1.0, 2.0, 3.0], [3.0, 1.0, 2.0])
    [0, 1]
    """
    front: list[int] = []
    for place in sorted(range(len(x)), key=lambda i: (x[i], y[i])):
        if not front or y[place] < y[front[-1]]:
            front.append(place)
    return front


def _panel(title: str, y_label: str, points: Sequence[SearchPoint], y: Sequence[float]) -> Panel:
    time = [point.time for point in points]
    series = []
    for name in dict.fromkeys(point.name for point in points):
        places = [i for i, point in enumerate(points) if point.name == name]
        series.append(Series(name, tuple(time[i] for i in places), tuple(y[i] for i in places), kind="points"))
    front = not_dominated(time, y)
    line = Series(FRONT, tuple(time[i] for i in front), tuple(y[i] for i in front), emphasis=True)
    return Panel(title, "virtual time to the target, s", y_label, (*series, line), x_log=True, y_log=True)
