"""The figures of the communication study: what is left of the way against bytes, uploads and seconds on slow links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

import numpy as np

from asyncfed.analysis.statistics import geometric_band
from asyncfed.communication.cells import LINKS
from asyncfed.communication.codecs import CODECS, NO_CODEC
from asyncfed.communication.measured_run import Point
from asyncfed.communication.problems import PROBLEMS
from asyncfed.communication.summary import MEASURES, Measure, Row
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.figures.matplotlib_figures import MOST_PANELS

PLACES = 80
"""Points of a line."""

LEFT = "share of the way that is left"
WORSE = 2.0
"""A run whose share is above this diverges, and is not drawn further."""
BANDS = "Geometric means over seeds with 95 % bands, as far as all seeds have data; runs stop at the target."


def study_figures(rows: Sequence[Row]) -> list[FigureData]:
    """Of each problem: bytes and uploads of the first strategy, its time on each link, and the other strategies."""
    figures = []
    for problem in dict.fromkeys(row.cell.problem for row in rows):
        own = [row for row in rows if row.cell.problem == problem]
        strategies, links = (
            list(dict.fromkeys(getattr(row.cell, name) for row in own)) for name in ("strategy", "link")
        )
        first = [row for row in own if row.cell.strategy == strategies[0]]
        slowest = [row for row in own if row.cell.link == links[0]]
        figures.append(_cost_figure(problem, strategies[0], [row for row in first if row in slowest]))
        figures.append(_link_figure(problem, strategies[0], first, links))
        if len(strategies) > 1:
            figures.append(_strategy_figure(problem, slowest, strategies[1:]))
    return figures


def _cost_figure(problem: str, strategy: str, rows: Sequence[Row]) -> FigureData:
    measures: tuple[Measure, ...] = ("bytes_up", "bytes", "uploads")
    return FigureData(
        f"{problem}_costs",
        f"{problem}: what {strategy} sends until its loss is there",
        f"{PROBLEMS[problem].summary[0].upper()}{PROBLEMS[problem].summary[1:]}. {BANDS}",
        tuple(_panel(f"against {MEASURES[measure][0]}", measure, rows) for measure in measures),
        rerun=_command(problem, [strategy]),
    )


def _link_figure(problem: str, strategy: str, rows: Sequence[Row], links: Sequence[str]) -> FigureData:
    return FigureData(
        f"{problem}_links",
        f"{problem}: how long {strategy} takes on slow links",
        f"Virtual time: computing, downloads and uploads. {BANDS}",
        tuple(_panel(LINKS[link][0], "seconds", [row for row in rows if row.cell.link == link]) for link in links),
        rerun=_command(problem, [strategy]),
    )


def _strategy_figure(problem: str, rows: Sequence[Row], strategies: Sequence[str]) -> FigureData:
    shown = strategies[:MOST_PANELS]
    return FigureData(
        f"{problem}_strategies",
        f"{problem}: the other strategies",
        f"Bytes up until the loss is there. {BANDS}",
        tuple(_panel(name, "bytes_up", [row for row in rows if row.cell.strategy == name]) for name in shown),
        rerun=_command(problem, shown),
    )


def _command(problem: str, strategies: Sequence[str]) -> str:
    return f"asyncfed communication --problems {problem} --strategies {','.join(strategies)}"


def _panel(title: str, measure: Measure, rows: Sequence[Row]) -> Panel:
    words, read = MEASURES[measure]
    series = tuple(_series(row, read) for row in rows)
    return Panel(title, words, LEFT, tuple(line for line in series if line.x), x_log=True, y_log=True)


def _series(row: Row, read: Callable[[Point], float]) -> Series:
    curves = [points for run in row.runs if len(points := _drawn(run.points)) > 1]
    xs = [np.array([read(point) for point in points], float) for points in curves]
    ys = [np.array([point.left for point in points], float) for points in curves]
    label = row.cell.codec.replace("_", " ")
    group = CODECS[row.cell.codec].group
    if not curves:
        return Series(label, (), ())
    band = geometric_band(xs, ys, PLACES)
    has_band = len(curves) > 1
    return Series(
        label,
        tuple(band.x.tolist()),
        tuple(band.mean.tolist()),
        tuple(band.low.tolist()) if has_band else (),
        tuple(band.high.tolist()) if has_band else (),
        group=group,
        emphasis=row.cell.codec == NO_CODEC,
    )


def _drawn(points: Sequence[Point]) -> list[Point]:
    """The measurements before the first that is far worse than the beginning."""
    return list(takewhile(lambda point: point.left <= WORSE, points))
