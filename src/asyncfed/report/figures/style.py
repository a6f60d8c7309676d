"""One look for every figure: sizes fit for print, colours that colour-blind readers can tell apart, and little ink.

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

# Okabe & Ito's palette without its yellow, which is too faint for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("solid", (0, (6, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1)), (0, (8, 3)), (0, (1, 3)))
INK = "#333333"
FAINT = "#8c8c8c"
GRID = "#e4e4e4"
SMALL, MEDIUM, LARGE = 8.5, 10.0, 12.0
FULL_PAGE = (10.0, 7.0)
RESOLUTION = 150  # dots per inch
MOST_DECADES = 8


class Drawing(Figure):
    """A figure that notebooks show by themselves, without pyplot."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()


def blank(size: tuple[float, float]) -> Drawing:
    """An empty figure of so many inches."""
    figure = Drawing(figsize=size, dpi=RESOLUTION, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def line_look(position: int) -> dict[str, Any]:
    """Colour and dashes of the n-th line: both differ, so that print in grey still tells them apart."""
    return {
        "color": COLOURS[position % len(COLOURS)],
        "linestyle": DASHES[position % len(DASHES)],
        "linewidth": 1.8,
    }


def dress(axes: Axes, title: str, x_label: str, y_label: str) -> None:
    """Titles, units, a light grid, and no frame but the two axes."""
    axes.set_title(title, fontsize=MEDIUM, color=INK, loc="left", fontweight="bold")
    axes.set_xlabel(x_label, fontsize=SMALL, color=INK)
    axes.set_ylabel(y_label, fontsize=SMALL, color=INK)
    axes.tick_params(labelsize=SMALL, colors=INK, which="both")
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)


def headline(figure: Figure, title: str, subtitle: str) -> None:
    """Two lines above all panels: what it is, and what one should know before looking."""
    figure.suptitle(f"{title}\n", fontsize=LARGE, color=INK, fontweight="bold", x=0.01, ha="left")
    below_title = 1.0 - 0.3 / figure.get_figheight()  # 0.3 inches from the top, whatever the height
    figure.text(0.01, below_title, subtitle, fontsize=SMALL, color=FAINT, ha="left", va="top")


def show_losses(axes: Axes, values: np.ndarray) -> None:
    """A log scale that fits these values; of a curve that runs off to infinity only the first decades are shown."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive):
        return
    axes.set_yscale("log")
    low, high = float(positive.min()), float(positive.max())
    high = min(high, low * 10**MOST_DECADES)
    margin = (high / low) ** 0.05 if high > low else 1.5
    axes.set_ylim(low / margin, high * margin)
