"""The rivals' figure: updates a second of every system, one panel for each workload, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asyncfed.report.figures import axes_style, colours
from benchmarks.rivals.task import WORKLOADS

TITLES = {"w1": "W1: all training", "w2": "W2: all overhead", "w3": "W3: a network"}
OURS, LIMIT, RIVAL = colours.LINE_COLOURS[0], colours.FAINT, colours.LINE_COLOURS[1]


def save_figure(rows: Sequence[Mapping[str, Any]], subtitle: str, file: Path) -> None:
    """A PNG with a bar for every rate; a system without one keeps its line, empty."""
    figure = axes_style.new_figure((10.0, 1.6 + 0.28 * len(rows)))
    for axes, name in zip(figure.subplots(1, len(WORKLOADS), sharey=True), WORKLOADS, strict=True):
        rates = [row["updates_per_second"].get(name) for row in rows]
        shown = [(place, rate, row) for place, (rate, row) in enumerate(zip(rates, rows, strict=True)) if rate]
        if shown:
            axes.set_xscale("log")
            axes.set_xlim(min(rate for _, rate, _ in shown) / 3, max(rate for _, rate, _ in shown) * 12)
        for place, rate, row in shown:
            axes.barh(place, rate, color=OURS if row["is_ours"] else LIMIT if row["is_limit"] else RIVAL)
            text = f" {rate:,.0f}" if rate >= 100 else f" {rate:.1f}"
            axes.text(rate, place, text, va="center", fontsize=axes_style.SMALL - 1.5, color=colours.INK)
        axes_style.format_axes(axes, TITLES[name], "updates per second", "")
        axes.grid(False, axis="y")
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes_style.add_title(figure, "AsyncFed, its rivals and the limit", subtitle)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=axes_style.RESOLUTION)
