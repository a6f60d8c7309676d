"""Figures of a comparison: the same runs on four axes, and how many times cheaper one strategy is than another."""

from __future__ import annotations

from math import isfinite

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.protocols import AXES, Axis, ReportedComparison, check_label
from asyncfed.analysis.statistics import geometric_band
from asyncfed.report.figures import axes_style, colours
from asyncfed.report.units import choose_scale, format_ratio

TITLES: dict[Axis, str] = {
    "round": "Per round (the paper's view)",
    "elapsed": "On the clock",
    "bytes": "Per byte sent",
    "energy": "Per joule",
}


def draw_comparison(comparison: ReportedComparison) -> Figure:
    """Four panels: the objective against rounds, virtual time, bytes and energy.

    Lines are geometric means over seeds, bands their 95 % confidence intervals, drawn where every seed has data.
    """
    figure = axes_style.new_figure(axes_style.FULL_PAGE)
    panels = figure.subplots(2, 2, sharey=True)
    shown = [_draw_panel(axes, comparison, axis) for axes, axis in zip(panels.flat, AXES, strict=True)]
    axes_style.set_loss_scale(panels[0, 0], np.concatenate(shown))
    for axes in panels[:, 1]:
        axes.set_ylabel("")
    lines, names = panels[0, 0].get_legend_handles_labels()
    columns = min(3, len(names))
    figure.legend(lines, names, loc="outside lower center", ncols=columns, fontsize=axes_style.SMALL, frameon=False)
    axes_style.add_title(figure, f"{comparison.name}: {len(comparison.labels)} strategies", _caption(comparison))
    return figure


def _caption(comparison: ReportedComparison) -> str:
    seeds = len(comparison.seeds)
    band = f"geometric mean and 95 % confidence band of {seeds} seeds" if seeds > 1 else "one seed, hence no band"
    diverged = [f"{label} {count} of {seeds}" for label in comparison.labels if (count := _diverged(comparison, label))]
    return f"{band}; dashed: the target" + (f"; DIVERGED: {', '.join(diverged)}" if diverged else "")


def _diverged(comparison: ReportedComparison, label: str) -> int:
    return sum(run.verdict == "diverged" for run in comparison.runs[label].values())


def _draw_panel(axes: Axes, comparison: ReportedComparison, axis: Axis) -> np.ndarray:
    """Draw one axis and return the objectives shown, for the panels share their scale."""
    outcomes = [run for runs in comparison.runs.values() for run in runs.values()]
    scale = choose_scale(axis, max(float(run.positions(axis)[-1]) for run in outcomes))
    shown = []
    for position, label in enumerate(comparison.labels):
        runs = list(comparison.runs[label].values())
        band = geometric_band([run.positions(axis) for run in runs], [run.objective for run in runs])
        style = axes_style.line_style(position)
        x = band.x / scale.divisor
        name = f"{label} (diverged)" if _diverged(comparison, label) else label
        axes.plot(x, band.mean, **style, label=name, drawstyle="steps-post")
        axes.fill_between(x, band.low, band.high, color=style["color"], alpha=0.18, linewidth=0, step="post")
        shown.append(band.mean)
    axes_style.format_axes(axes, TITLES[axis], scale.label, "objective")
    axes.set_xscale("log")
    if isfinite(comparison.target):
        axes.axhline(comparison.target, color=colours.INK, linewidth=0.9, linestyle=(0, (5, 3)))
        shown.append(np.array([comparison.target]))
    return np.concatenate(shown)


def draw_time_to_target(comparison: ReportedComparison, baseline: str) -> Figure:
    """What each strategy needs to reach the target, as a multiple of what `baseline` needs with the same seed.

    A dot a seed; below, the geometric mean with its 95 % confidence interval. Left of 1 beats the baseline.
    """
    check_label(baseline, comparison.labels)
    others = [label for label in comparison.labels if label != baseline]
    figure = axes_style.new_figure((axes_style.FULL_PAGE[0], 1.8 + 0.5 * len(others)))
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_ratios(left, comparison, others, baseline, "round", "Rounds to the target")
    _draw_ratios(right, comparison, others, baseline, "elapsed", "Virtual time to the target")
    left.set_yticks(range(len(others)), others, fontsize=axes_style.SMALL)
    left.set_ylim(len(others) - 0.4, -0.6)
    reached = f"the target: objective ≤ {format_number(comparison.target)}"
    axes_style.add_title(
        figure,
        f"{comparison.name}: cost of the target against {baseline}",
        f"{reached}; dots: seeds, paired; diamonds: geometric mean with its 95 % confidence interval",
    )
    return figure


def _draw_ratios(
    axes: Axes, comparison: ReportedComparison, labels: list[str], baseline: str, axis: Axis, title: str
) -> None:
    limits = [1.0]
    for row, label in enumerate(labels):
        colour = colours.LINE_COLOURS[comparison.labels.index(label) % len(colours.LINE_COLOURS)]
        ratios = comparison.paired_ratios(label, baseline, axis)
        ratios = ratios[np.isfinite(ratios)]
        axes.plot(
            ratios, np.full(len(ratios), row - 0.16), "o", color=colour, alpha=0.45, markersize=4.5, markeredgewidth=0
        )
        found = comparison.ratio(label, baseline, axis)
        if not found.n:
            axes.text(0.5, row, "target never reached", transform=axes.get_yaxis_transform(), fontsize=axes_style.SMALL)
            continue
        if isfinite(found.low):
            axes.plot([found.low, found.high], [row + 0.1, row + 0.1], color=colour, linewidth=2.2)
            limits += [found.low, found.high]
        axes.plot(found.mean, row + 0.1, "D", color=colour, markersize=5.5)
        axes.annotate(
            f"{format_ratio(found.mean)}×",
            (found.mean, row + 0.1),
            (0, -12),
            textcoords="offset points",
            ha="center",
            fontsize=axes_style.SMALL,
            color=colours.INK,
        )
        limits += ratios.tolist()
    axes_style.format_axes(axes, title, f"times that of {baseline} (left of 1 is better)", "")
    axes.grid(False, axis="y")
    _show_ratio_axis(axes, min(limits), max(limits))


def _show_ratio_axis(axes: Axes, low: float, high: float) -> None:
    axes.set_xscale("log")
    axes.axvline(1.0, color=colours.INK, linewidth=1.0)
    axes.set_xlim(low / 1.3, high * 1.3)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_formatter(NullFormatter())
