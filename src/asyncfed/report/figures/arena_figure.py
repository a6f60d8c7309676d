"""The picture of the arena: a square for each strategy and cell, the darker the more it cost."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from asyncfed.arena.summary import Measure, Row, overall
from asyncfed.report.figures import axes_style, colours

MOST = 4.0
"""The logarithm to base 2 of the ratio to the best that is drawn darkest."""

MAP = LinearSegmentedColormap.from_list("cost", ["#f4fbf7", "#8fd3b6", "#2f9fb3", "#2f5d9b", "#2a1f5c"])
MISSED = "#d9d4cf"
WORDS: dict[str, str] = {
    "time": "virtual time to the target",
    "bytes": "bytes to the target",
    "energy": "energy to the target",
    "worst_time": "virtual time until the worst tenth of the clients reaches its target",
}


def draw_ratios(rows: Sequence[Row], measure: Measure = "time") -> Figure:
    """Rows are strategies, the best mean rank first; columns are cells; grey is "not reached"."""
    names = [one.strategy for one in overall(rows, measure)]
    cells = list(dict.fromkeys(row.entry.cell for row in rows))
    ratios = np.full((len(names), len(cells)), np.nan)
    for row in rows:
        ratio = row.measures[measure].to_best
        if ratio is not None:
            ratios[names.index(row.entry.strategy), cells.index(row.entry.cell)] = log2(max(ratio, 1.0))
    width = 3.2 + 0.17 * len(cells)
    figure = axes_style.new_figure((max(width, 7.0), 2.6 + 0.19 * len(names)))
    axes = figure.subplots()
    shades = MAP.with_extremes(bad=MISSED)
    image = axes.imshow(np.ma.masked_invalid(ratios), cmap=shades, vmin=0.0, vmax=MOST, aspect="auto")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    labels = [f"{cell.problem} {cell.delays.replace('_', ' ')} {cell.split}" for cell in cells]
    axes.set_xticks(range(len(cells)), labels, fontsize=6, rotation=90)
    axes.tick_params(length=0, colors=colours.INK)
    for side in axes.spines.values():
        side.set_visible(False)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, ticks=range(int(MOST) + 1))
    bar.ax.set_yticklabels(
        [f"{2**power} x" for power in range(int(MOST))] + [f"{2 ** int(MOST)} x or more"], fontsize=7
    )
    axes_style.add_title(
        figure,
        "The arena: cost over that of the best",
        f"{WORDS[measure]}; grey: no run reached it. Best mean rank first.",
    )
    return figure
