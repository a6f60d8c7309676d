"""Figures on paper: any `FigureData` as a Matplotlib figure, for PNG and for PDF with its fonts embedded."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from asyncfed.core.errors import ConfigError
from asyncfed.report import style
from asyncfed.report.figure_data import FigureData, Panel, Series
from asyncfed.report.looks import Key, Look, key_of, looks, shown_range

MOST_PANELS = 4
WIDTH = 10.0  # inches
PANEL_HEIGHT = 3.5
DOTS_PER_INCH = 160
BAND = 0.18
BAR_ROOM = 0.8
LETTERS_PER_INCH = 16.0


def draw(figure: FigureData) -> Figure:
    """Up to four panels, side by side or two by two, with one legend below; a panel's note stands under it.

    Lines have bands, points and bars have whiskers, where `low` and `high` are given.
    """
    count = len(figure.panels)
    if not 1 <= count <= MOST_PANELS:
        raise ConfigError(f'figure "{figure.name}" has {count} panels; a page holds 1 to {MOST_PANELS}. Split it.')
    columns = 3 if count == 3 else min(count, 2)
    rows = -(-count // columns)
    found = looks(figure)
    caption = wrap(figure.caption, int(WIDTH * LETTERS_PER_INCH * 0.95))
    drawing = style.blank((WIDTH, PANEL_HEIGHT * rows + 0.5 + 0.16 * len(caption) + 0.2 * _legend_rows(found)))
    axes = drawing.subplots(rows, columns, squeeze=False).flat
    for panel, place in zip(figure.panels, axes, strict=True):
        _draw_panel(place, panel, found, int(WIDTH / columns * LETTERS_PER_INCH * 0.8))
    _draw_legend(drawing, found)
    style.headline(drawing, figure.title + "\n" * max(0, len(caption) - 1), "\n".join(caption))
    return drawing


def save_printed(figure: FigureData, folder: Path) -> list[Path]:
    """Write the figure as NAME.png and NAME.pdf, without dates, so that the same data make the same bytes."""
    drawing = draw(figure)
    files = [folder / f"{figure.name}.png", folder / f"{figure.name}.pdf"]
    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"pdf.fonttype": 42}):  # TrueType: text in the PDF stays text, and journals accept it
        drawing.savefig(files[0], dpi=DOTS_PER_INCH)
        drawing.savefig(files[1], metadata={"CreationDate": None})
    return files


def _draw_panel(axes: Axes, panel: Panel, found: dict[Key, Look], letters: int) -> None:
    bars = [series for series in panel.series if series.kind == "bar"]
    for position, series in enumerate(panel.series):
        x, y, low, high = (_numbers(values) for values in (series.x, series.y, series.low, series.high))
        look = found[key_of(series)]
        if series.kind == "line":
            _draw_line(axes, x, y, low, high, look, position)
        elif series.kind == "points":
            whiskers = {"yerr": np.array([y - low, high - y])} if len(low) else {}
            axes.errorbar(x, y, fmt="o", color=look.colour, markersize=2.6 * look.width**0.5, **whiskers, zorder=4)
        else:
            _draw_bars(axes, bars, bars.index(series), look)
    note = "\n".join(wrap(panel.note, letters))
    style.dress(axes, "\n".join(wrap(panel.title, int(letters * 0.85))), panel.x_label, panel.y_label)
    if note:
        axes.set_xlabel(f"{panel.x_label}\n", fontsize=style.SMALL, color=style.INK)
        below = axes.annotate(
            note, (0, 0), (0, -34), xycoords="axes fraction", textcoords="offset points", va="top",
            fontsize=style.SMALL - 1, color=style.FAINT,
        )  # fmt: skip
        axes.set_xlabel(panel.x_label + "\n" * (1 + below.get_text().count("\n")), fontsize=style.SMALL)
        below.set_in_layout(False)  # the empty lines of the label keep its place, also against the legend
    _scale(axes, panel)


def _scale(axes: Axes, panel: Panel) -> None:
    if panel.x_log:
        axes.set_xscale("log")
    elif all(value == int(value) for series in panel.series for value in series.x):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    limits = shown_range(panel)
    if limits:
        axes.set_yscale("log")
        axes.set_ylim(*limits)


def _draw_line(
    axes: Axes, x: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray, look: Look, position: int
) -> None:
    dash = (0, look.dash) if look.dash else "solid"
    alone = {"marker": "o", "markersize": 4.0} if np.isfinite(y).sum() < 3 else {}
    front = 3 if look.width > 2 else 2
    axes.plot(x, y, color=look.colour, linestyle=dash, linewidth=look.width, zorder=front, **alone)
    if len(low):
        floor = np.nanmin(np.where(y > 0, y, np.nan), initial=np.inf) * 1e-3  # far below a logarithmic axis
        bottom = np.where(low <= 0, floor, low) if axes.get_yscale() == "log" else low
        axes.fill_between(x, bottom, high, color=look.colour, alpha=BAND, linewidth=0, zorder=1)


def _draw_bars(axes: Axes, bars: list[Series], place: int, look: Look) -> None:
    """Bars of several series stand beside each other at the same x."""
    series = bars[place]
    x, y, low, high = (_numbers(values) for values in (series.x, series.y, series.low, series.high))
    steps = np.diff(np.unique([value for each in bars for value in each.x]))
    width = (float(steps.min()) if len(steps) else 1.0) * BAR_ROOM / len(bars)
    whiskers = {"yerr": np.array([y - low, high - y]), "ecolor": style.INK} if len(low) else {}
    axes.bar(x + (place - (len(bars) - 1) / 2) * width, y, width, color=look.colour, **whiskers)
    axes.grid(False, axis="x")


def _draw_legend(drawing: Figure, found: dict[Key, Look]) -> None:
    if len(found) < 2:
        return
    names = [_name(key) for key in found]
    lines = [
        drawing.axes[0].plot([], [], color=look.colour, linestyle=(0, look.dash) if look.dash else "-", lw=look.width)[0]
        for look in found.values()
    ]
    drawing.legend(
        lines, names, loc="outside lower center", ncols=_legend_columns(found), fontsize=style.SMALL, frameon=False,
        handlelength=3.4, labelcolor=style.INK,
    )  # fmt: skip


def _name(key: Key) -> str:
    """The label, and its group if the label alone does not say it.

    >>> _name(("published", "0.5")), _name(("0.5", "0.5")), _name(("", "mean"))
    ('0.5 (published)', '0.5', 'mean')
    """
    group, label = key
    return f"{label} ({group})" if group and group not in label else label


def _legend_columns(found: dict[Key, Look]) -> int:
    longest = max((len(_name(key)) for key in found), default=1)
    return max(1, min(len(found), int(WIDTH * LETTERS_PER_INCH / (longest + 9))))


def _legend_rows(found: dict[Key, Look]) -> int:
    return -(-len(found) // _legend_columns(found))


def _numbers(values: tuple[float | None, ...]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], float)
