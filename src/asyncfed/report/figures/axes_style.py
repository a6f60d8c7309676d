"""How Matplotlib figures look: sizes for print, titles, axes, grid and scale. Colours are in `colours`.

Everything is set on the figure at hand. matplotlib's global settings are neither read from pyplot nor changed, so
figures can be drawn in threads, notebooks and servers alike.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from asyncfed.report.figures import colours
from asyncfed.report.figures.log_scale import log_limits

SMALL, MEDIUM, LARGE = 8.5, 10.0, 12.0
FULL_PAGE = (10.0, 7.0)
RESOLUTION = 150  # dots per inch


class NotebookFigure(Figure):
    """A figure that notebooks show by themselves, without pyplot."""

    def _repr_png_(self) -> bytes:
        image = BytesIO()
        self.savefig(image, format="png")
        return image.getvalue()


def new_figure(size: tuple[float, float]) -> NotebookFigure:
    """An empty figure of so many inches."""
    figure = NotebookFigure(figsize=size, dpi=RESOLUTION, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def line_style(position: int) -> dict[str, Any]:
    """Colour and dashes of the n-th line: both differ, so that lines can be distinguished in print without colour."""
    return {
        "color": colours.LINE_COLOURS[position % len(colours.LINE_COLOURS)],
        "linestyle": matplotlib_dash(colours.LINE_DASHES[position % len(colours.LINE_DASHES)]),
        "linewidth": 1.8,
    }


def matplotlib_dash(lengths: tuple[float, ...]) -> Any:
    """Lengths of line and gap as Matplotlib wants them."""
    return (0, lengths) if lengths else "solid"


def format_axes(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    """Titles, units, a light grid, and no frame but the two axes."""
    axes.set_title(title, fontsize=MEDIUM, color=colours.INK, loc="left", fontweight="bold")
    axes.set_xlabel(x_label, fontsize=SMALL, color=colours.INK)
    axes.set_ylabel(y_label, fontsize=SMALL, color=colours.INK)
    axes.tick_params(labelsize=SMALL, colors=colours.INK, which="both")
    axes.grid(True, color=colours.GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colours.FAINT)


def add_title(figure: Figure, title: str, subtitle: str) -> None:
    """Two lines above all panels: what it is, and what one should know before looking."""
    figure.suptitle(f"{title}\n", fontsize=LARGE, color=colours.INK, fontweight="bold", x=0.01, ha="left")
    below_title = 1.0 - 0.3 / figure.get_figheight()  # 0.3 inches from the top, whatever the height
    figure.text(0.01, below_title, subtitle, fontsize=SMALL, color=colours.FAINT, ha="left", va="top")


def set_loss_scale(axes: Axes, values: np.ndarray) -> None:
    """A log scale that fits these values; of a curve that runs off to infinity only the first decades are shown."""
    limits = log_limits(values)
    if limits is None:
        return
    low, high = limits
    axes.set_yscale("log")
    margin = (high / low) ** 0.05 if high > low else 1.5
    axes.set_ylim(low / margin, high * margin)
