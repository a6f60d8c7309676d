"""How each series of a figure looks, the same on paper and on the page: a colour, dashes and a width by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from asyncfed.core.record import Record, replace
from asyncfed.report.figures import style
from asyncfed.report.figures.figure_data import FigureData, Panel, Series

Key: TypeAlias = tuple[str, str]
"""A series' group and label: the same pair looks the same in every panel."""

PLAIN, BOLD = 1.5, 3.0


class Look(Record):
    """`dash` is the lengths of ink and gap in line widths; empty means solid."""

    colour: str
    dash: tuple[float, ...]
    width: float
    kind: Literal["line", "points", "bar"] = "line"


def key_of(series: Series) -> Key:
    return series.group, series.label


def name_of(key: Key) -> str:
    """The label, and its group if the label alone does not say it.

    >>> name_of(("published", "0.5")), name_of(("0.5", "0.5")), name_of(("", "mean"))
    ('0.5 (published)', '0.5', 'mean')
    """
    group, label = key
    return f"{label} ({group})" if group and group not in label else label


def looks(figure: FigureData) -> dict[Key, Look]:
    """The look of every series, in the order in which they first appear.

    Points or bars with the one line of their group share its colour. A single bold series among plain ones is their
    summary, and is drawn in ink.
    """
    everything = {key_of(series): series for panel in figure.panels for series in panel.series}
    leaders = _leaders(everything)
    bold = [key for key, series in everything.items() if series.emphasis]
    summary = bold if len(bold) == 1 and len(everything) > 1 else []
    found = {key: Look(style.INK, (), PLAIN) for key in summary}
    found |= _told_apart({key: everything[key] for key in everything if key not in summary and key not in leaders})
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


def _told_apart(everything: dict[Key, Series]) -> dict[Key, Look]:
    """Groups and their members are two ways in which lines differ: one gets the colours, the other the dashes.

    With nothing left for dashes to say they repeat the colours, for print in grey. Points and bars have no dashes, so
    with any of them every series has its own colour.
    """
    only_lines = all(series.kind == "line" for series in everything.values())
    places = _places(list(everything)) if only_lines else {key: (place, 0) for place, key in enumerate(everything)}
    colours = palette(1 + max((colour for colour, _ in places.values()), default=0))
    told_by_dash = any(dash for _, dash in places.values())
    by_lightness = len(colours) > len(style.COLOURS)
    return {
        key: Look(colours[colour], _dash(dash if told_by_dash else 0 if by_lightness else colour), PLAIN)
        for key, (colour, dash) in places.items()
    }


def palette(count: int) -> Sequence[str]:
    """So many colours: told apart by hue while the palette lasts, then by lightness, in order.

    >>> palette(2), len(set(palette(8)))
    (('#0072B2', '#D55E00'), 8)
    """
    if count <= len(style.COLOURS):
        return style.COLOURS[:count]
    return [to_hex(colour) for colour in colormaps["viridis"](np.linspace(0.0, 0.87, count))]


def shown_range(panel: Panel) -> tuple[float, float] | None:
    """The ends of a logarithmic y axis that fits the lines; None if the axis is linear or nothing is positive.

    Bands may run off the paper: one that reaches below zero has no end on a logarithmic axis. Of a curve that runs
    off to infinity only the first decades are shown.
    """
    values = np.array([value for series in panel.series for value in series.y if value is not None], float)
    positive = values[np.isfinite(values) & (values > 0)]
    if not panel.y_log or not len(positive):
        return None
    low = float(positive.min())
    high = min(float(positive.max()), low * 10**style.MOST_DECADES)
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
    dash = style.DASHES[place % len(style.DASHES)]
    return () if isinstance(dash, str) else tuple(float(length) for length in dash[1])
