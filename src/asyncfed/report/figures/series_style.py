"""The colour, dashes and width of each series of a figure, by its name: the same on paper and on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from asyncfed.core.record import Record, replace
from asyncfed.report.figures.colours import INK, LINE_COLOURS, LINE_DASHES
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.figures.log_scale import log_limits

Key: TypeAlias = tuple[str, str]
"""A series' group and label: the same pair has the same style in every panel."""

PLAIN, BOLD = 1.5, 3.0


class SeriesStyle(Record):
    """How a series is drawn; `dash` is the lengths of line and gap in line widths, () for solid."""

    colour: str
    dash: tuple[float, ...]
    width: float
    kind: Literal["line", "points", "bar"] = "line"


def series_key(series: Series) -> Key:
    """What a series is known by in all panels of its figure."""
    return series.group, series.label


def legend_label(key: Key) -> str:
    """The label, and its group if the label alone does not say it.

    >>> legend_label(("published", "0.5")), legend_label(("0.5", "0.5")), legend_label(("", "mean"))
    ('0.5 (published)', '0.5', 'mean')
    """
    group, label = key
    return f"{label} ({group})" if group and group not in label else label


def series_styles(figure: FigureData) -> dict[Key, SeriesStyle]:
    """The style of every series, in the order in which they first appear.

    Points or bars with the one line of their group share its colour. A single bold series among plain ones is their
    summary, and is drawn in ink.
    """
    everything = {series_key(series): series for panel in figure.panels for series in panel.series}
    leaders = _leaders(everything)
    bold = [key for key, series in everything.items() if series.emphasis]
    summary = bold if len(bold) == 1 and len(everything) > 1 else []
    found = {key: SeriesStyle(INK, (), PLAIN) for key in summary}
    found |= _distinguish({key: everything[key] for key in everything if key not in summary and key not in leaders})
    found |= {key: found[leader] for key, leader in leaders.items()}
    return {
        key: replace(found[key], kind=series.kind, width=BOLD if series.emphasis else PLAIN)
        for key, series in everything.items()
    }


def _leaders(everything: dict[Key, Series]) -> dict[Key, Key]:
    """For points or bars that share a group with one line and nothing else: that line."""
    groups = {group: [key for key in everything if key[0] == group] for group, _ in everything if group}
    pairs = [sorted(keys, key=lambda key: everything[key].kind != "line") for keys in groups.values() if len(keys) == 2]
    return {
        other: line for line, other in pairs if everything[line].kind == "line" and everything[other].kind != "line"
    }


def _distinguish(everything: dict[Key, Series]) -> dict[Key, SeriesStyle]:
    """Groups and their members are two ways in which lines differ: one gets the colours, the other the dashes.

    With nothing left for dashes to say they repeat the colours, for print in grey. Points and bars have no dashes, so
    with any of them every series has its own colour.
    """
    only_lines = all(series.kind == "line" for series in everything.values())
    places = _places(list(everything)) if only_lines else {key: (place, 0) for place, key in enumerate(everything)}
    palette = choose_colours(1 + max((colour for colour, _ in places.values()), default=0))
    dashes_differ = any(dash for _, dash in places.values())
    by_lightness = len(palette) > len(LINE_COLOURS)
    return {
        key: SeriesStyle(palette[colour], _dash(dash if dashes_differ else 0 if by_lightness else colour), PLAIN)
        for key, (colour, dash) in places.items()
    }


def choose_colours(count: int) -> Sequence[str]:
    """So many colours: they differ in hue as long as there are enough of them, else in lightness, in order.

    >>> choose_colours(2), len(set(choose_colours(8)))
    (('#0072B2', '#D55E00'), 8)
    """
    if count <= len(LINE_COLOURS):
        return LINE_COLOURS[:count]
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps["viridis"](np.linspace(0.0, 0.87, count))]


def y_axis_range(panel: Panel) -> tuple[float, float] | None:
    """The ends of a logarithmic y axis that fits the lines; None if the axis is linear or nothing is positive.

    Bands may run off the paper: one that reaches below zero has no end on a logarithmic axis. Of a curve that runs
    off to infinity only the first decades are shown.
    """
    values = np.array([value for series in panel.series for value in series.y if value is not None], float)
    limits = log_limits(values)
    if not panel.y_log or limits is None:
        return None
    low, high = limits
    margin = max((high / low) ** 0.05, 1.1)
    return low / margin, high * margin


def _places(keys: list[Key]) -> dict[Key, tuple[int, int]]:
    """Each series' place among the colours and among the dashes; the longer list gets the colours."""
    groups = list(dict.fromkeys(group for group, _ in keys))
    labels = list(dict.fromkeys(label for _, label in keys))
    members = {group: [label for of, label in keys if of == group] for group in groups}
    shared = len(labels) < len(keys)
    place = {key: (labels if shared else members[key[0]]).index(key[1]) for key in keys}
    if len(groups) >= max(place.values(), default=0) + 1:
        return {key: (groups.index(key[0]), place[key]) for key in keys}
    return {key: (place[key], groups.index(key[0])) for key in keys}


def _dash(place: int) -> tuple[float, ...]:
    return LINE_DASHES[place % len(LINE_DASHES)]
