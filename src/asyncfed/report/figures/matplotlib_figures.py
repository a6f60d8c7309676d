"""Figures for print: any `FigureData` as a Matplotlib figure, for PNG and for PDF with its fonts embedded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from asyncfed.core.errors import ConfigError
from asyncfed.report.figures import axes_style, colours
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.figures.series_style import Key, SeriesStyle, legend_label, series_key, series_styles, y_axis_range

MOST_PANELS = 4
WIDTH = 10.0  # inches
PANEL_HEIGHT = 3.5
DOTS_PER_INCH = 160
FEW_DECADES = 30.0  # an axis shorter than this ratio has too few powers of ten to be read by them alone
BAND = 0.18
BAR_ROOM = 0.8
DOTS: dict[str, Any] = {"markersize": 4.0, "markeredgewidth": 0.6, "markeredgecolor": colours.INK}
WHISKERS = {"elinewidth": 1.0, "ecolor": colours.INK}
LETTERS_PER_INCH = 16.0


def draw_figure(figure: FigureData) -> Figure:
    """Up to four panels, side by side or two by two, with one legend below; a panel's note is written under it.

    Lines have bands, points and bars have whiskers, where `low` and `high` are given.
    """
    count = len(figure.panels)
    if not 1 <= count <= MOST_PANELS:
        raise ConfigError(f'figure "{figure.name}" has {count} panels; a page holds 1 to {MOST_PANELS}. Split it.')
    columns = 3 if count == 3 else min(count, 2)
    rows = -(-count // columns)
    found = series_styles(figure)
    caption = wrap(figure.caption, int(WIDTH * LETTERS_PER_INCH * 0.95))
    height = PANEL_HEIGHT * rows + 0.5 + 0.16 * len(caption) + 0.2 * _legend_rows(found)
    drawing = axes_style.new_figure((WIDTH, height))
    axes = drawing.subplots(rows, columns, squeeze=False).flat
    for panel, place in zip(figure.panels, axes, strict=True):
        _draw_panel(place, panel, found, int(WIDTH / columns * LETTERS_PER_INCH * 0.8))
    _draw_legend(drawing, found)
    axes_style.add_title(drawing, figure.title + "\n" * max(0, len(caption) - 1), "\n".join(caption))
    _lay_out(drawing)
    return drawing


def _lay_out(drawing: Figure) -> None:
    """Find every part's place once, not again for every file that is written: it takes most of the time."""
    engine = drawing.get_layout_engine()
    if engine is not None:
        engine.execute(drawing)
    drawing.set_layout_engine(None)


def save_png_and_pdf(figure: FigureData, folder: Path) -> list[Path]:
    """Write the figure as NAME.png and NAME.pdf, without dates, so that the same data make the same bytes."""
    drawing = draw_figure(figure)
    files = [folder / f"{figure.name}.png", folder / f"{figure.name}.pdf"]
    folder.mkdir(parents=True, exist_ok=True)
    with rc_context({"pdf.fonttype": 42}):  # TrueType: text in the PDF stays text, and journals accept it
        drawing.savefig(files[0], dpi=DOTS_PER_INCH)
        drawing.savefig(files[1], metadata={"CreationDate": None})
    return files


def _draw_panel(axes: Axes, panel: Panel, found: dict[Key, SeriesStyle], letters: int) -> None:
    _scale(axes, panel)
    bars = [series for series in panel.series if series.kind == "bar"]
    for series in panel.series:
        style = found[series_key(series)]
        if series.kind == "line":
            _draw_line(axes, series, style)
        elif series.kind == "points":
            _draw_points(axes, series, style)
        else:
            _draw_bars(axes, bars, bars.index(series), style)
    axes_style.format_axes(axes, "\n".join(wrap(panel.title, int(letters * 0.75))), panel.x_label, panel.y_label)
    if panel.note:
        _write_note(axes, panel.x_label, wrap(panel.note, letters))


def _write_note(axes: Axes, x_label: str, lines: list[str]) -> None:
    """Small grey lines at the left, below the axis; empty lines of the label keep their place in the layout."""
    axes.set_xlabel(x_label + "\n" * (1 + len(lines)), fontsize=axes_style.SMALL)
    note = axes.annotate("\n".join(lines), (0, 0), (0, -34), xycoords="axes fraction", textcoords="offset points")
    note.set(verticalalignment="top", fontsize=axes_style.SMALL - 1, color=colours.FAINT, in_layout=False)


def _scale(axes: Axes, panel: Panel) -> None:
    if panel.x_log:
        axes.set_xscale("log")
        _label_few_decades(axes.xaxis, [value for series in panel.series for value in series.x if value > 0])
    elif all(value == int(value) for series in panel.series for value in series.x):
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    limits = y_axis_range(panel)
    if limits:
        axes.set_yscale("log")
        axes.set_ylim(*limits)
        _label_few_decades(axes.yaxis, limits)


def _label_few_decades(axis: Axis, values: Sequence[float]) -> None:
    """1, 2, 5, 10 on a logarithmic axis that has too few powers of ten to be read by them alone."""
    axis.set_minor_formatter(NullFormatter())
    if values and max(values) / min(values) < FEW_DECADES:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _draw_line(axes: Axes, series: Series, style: SeriesStyle) -> None:
    x, y, low, high = _columns(series)
    marker = "o" if np.isfinite(y).sum() < 3 else "none"  # a line through one or two points would not be seen
    front = 3 if series.emphasis else 2
    axes.plot(
        x,
        y,
        marker=marker,
        ls=axes_style.matplotlib_dash(style.dash),
        color=style.colour,
        lw=style.width,
        markersize=4.0,
        zorder=front,
    )
    if len(low):
        bottom = np.maximum(low, axes.get_ylim()[0] / 10) if axes.get_yscale() == "log" else low
        axes.fill_between(x, bottom, high, color=style.colour, alpha=BAND, linewidth=0, zorder=1)


def _draw_points(axes: Axes, series: Series, style: SeriesStyle) -> None:
    x, y, _, _ = _columns(series)
    axes.errorbar(x, y, _whiskers(series), fmt="o", color=style.colour, elinewidth=1.0, zorder=4, **DOTS)


def _draw_bars(axes: Axes, bars: list[Series], place: int, style: SeriesStyle) -> None:
    """Bars of several series stand beside each other at the same x."""
    x, y, _, _ = _columns(bars[place])
    steps = np.diff(np.unique([value for each in bars for value in each.x]))
    width = (float(steps.min()) if len(steps) else 1.0) * BAR_ROOM / len(bars)
    middle = x + (place - (len(bars) - 1) / 2) * width
    axes.bar(middle, y, width, color=style.colour, yerr=_whiskers(bars[place]), error_kw=WHISKERS)
    axes.grid(False, axis="x")


def _whiskers(series: Series) -> np.ndarray | None:
    _, y, low, high = _columns(series)
    return np.maximum([y - low, high - y], 0.0) if len(low) else None


def _columns(series: Series) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return _numbers(series.x), _numbers(series.y), _numbers(series.low), _numbers(series.high)


def _draw_legend(drawing: Figure, found: dict[Key, SeriesStyle]) -> None:
    if len(found) < 2:
        return
    samples, names = [_sample(style) for style in found.values()], [legend_label(key) for key in found]
    text = {"fontsize": axes_style.SMALL, "frameon": False, "labelcolor": colours.INK, "handlelength": 3.4}
    drawing.legend(samples, names, loc="outside lower center", ncols=_legend_columns(found), **text)


def _sample(style: SeriesStyle) -> Artist:
    if style.kind == "bar":
        return Patch(color=style.colour)
    if style.kind == "points":
        return Line2D([], [], color=style.colour, marker="o", linestyle="none", **DOTS)
    return Line2D([], [], color=style.colour, linestyle=axes_style.matplotlib_dash(style.dash), linewidth=style.width)


def _legend_columns(found: dict[Key, SeriesStyle]) -> int:
    longest = max((len(legend_label(key)) for key in found), default=1)
    return max(1, min(len(found), int(WIDTH * LETTERS_PER_INCH / (longest + 9))))


def _legend_rows(found: dict[Key, SeriesStyle]) -> int:
    return -(-len(found) // _legend_columns(found))


def _numbers(values: tuple[float | None, ...]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], float)
