"""Figures of a comparison: the same runs on four axes, all they measured, and how many times cheaper one of them is."""

from __future__ import annotations

from math import isfinite

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from asyncfed.analysis.comparison_target import rises
from asyncfed.analysis.protocols import AXES, Axis, ReportedComparison, check_label
from asyncfed.analysis.statistics import geometric_band, mean_band
from asyncfed.report.figures import axes_style, colours
from asyncfed.report.units import choose_scale, describe_target, format_ratio

TITLES: dict[Axis, str] = {
    "round": "Per round (the paper's view)",
    "elapsed": "In virtual time",
    "bytes": "Per byte sent",
    "energy": "Per joule",
}

MEASUREMENTS = ("objective", "accuracy", "validation_loss", "validation_accuracy", "test_loss", "test_accuracy")
"""What is drawn of a comparison besides the metric it is about, where it was measured."""


def draw_comparison(comparison: ReportedComparison) -> Figure:
    """Four panels: the compared metric against rounds, virtual time, bytes and energy.

    Lines are geometric means over seeds (of accuracies, means), bands their 95 % confidence intervals, drawn where
    every seed has data.
    """
    figure = axes_style.new_figure(axes_style.FULL_PAGE)
    panels = figure.subplots(2, 2, sharey=True)
    metric = comparison.metric
    shown = [
        _draw_panel(axes, comparison, axis, metric, TITLES[axis]) for axes, axis in zip(panels.flat, AXES, strict=True)
    ]
    _set_scale(panels[0, 0], metric, np.concatenate(shown))
    for axes in panels[:, 1]:
        axes.set_ylabel("")
    title = f"{comparison.name}: {len(comparison.labels)} strategies"
    _finish(figure, panels[0, 0], comparison, title, "mean" if rises(metric) else "geometric mean")
    return figure


def draw_measurements(comparison: ReportedComparison) -> Figure:
    """A panel for each loss and accuracy that was measured, on training and held-out rows, against virtual time."""
    metrics = shown_measurements(comparison)
    rows = (len(metrics) + 1) // 2
    figure = axes_style.new_figure((axes_style.FULL_PAGE[0], 1.4 + 2.8 * rows))
    panels = figure.subplots(rows, 2, squeeze=False)
    for axes, metric in zip(panels.flat, metrics, strict=False):
        words = metric.replace("_", " ")
        _set_scale(axes, metric, _draw_panel(axes, comparison, "elapsed", metric, words.capitalize()))
    for axes in panels.flat[len(metrics) :]:
        axes.set_visible(False)
    title = f"{comparison.name}: what was measured"
    _finish(figure, panels[0, 0], comparison, title, "geometric mean of losses, mean of accuracies,")
    return figure


def shown_measurements(comparison: ReportedComparison) -> list[str]:
    """The losses and accuracies of `MEASUREMENTS` that all runs measured."""
    return [name for name in MEASUREMENTS if name in comparison.measured]


def _set_scale(axes: Axes, metric: str, values: np.ndarray) -> None:
    """Losses on a log scale; accuracies as they are."""
    if not rises(metric):
        axes_style.set_loss_scale(axes, values)


def _finish(figure: Figure, first: Axes, comparison: ReportedComparison, title: str, mean: str) -> None:
    lines, names = first.get_legend_handles_labels()
    columns = min(3, len(names))
    figure.legend(lines, names, loc="outside lower center", ncols=columns, fontsize=axes_style.SMALL, frameon=False)
    axes_style.add_title(figure, title, _caption(comparison, mean))


def _caption(comparison: ReportedComparison, mean: str) -> str:
    seeds = len(comparison.seeds)
    band = f"{mean} and 95 % confidence band of {seeds} seeds" if seeds > 1 else "one seed, hence no band"
    diverged = [f"{label} {count} of {seeds}" for label in comparison.labels if (count := _diverged(comparison, label))]
    return f"{band}; dashed: {describe_target(comparison)}" + (f"; DIVERGED: {', '.join(diverged)}" if diverged else "")


def _diverged(comparison: ReportedComparison, label: str) -> int:
    return sum(run.verdict == "diverged" for run in comparison.runs[label].values())


def _draw_panel(axes: Axes, comparison: ReportedComparison, axis: Axis, metric: str, title: str) -> np.ndarray:
    """Draw a metric against one axis and return the values shown, for panels may share their scale."""
    outcomes = [run for runs in comparison.runs.values() for run in runs.values()]
    scale = choose_scale(axis, max(float(run.positions(axis)[-1]) for run in outcomes))
    shown = []
    for position, label in enumerate(comparison.labels):
        runs = list(comparison.runs[label].values())
        find_band = mean_band if rises(metric) else geometric_band
        band = find_band([run.positions(axis) for run in runs], [run.values(metric) for run in runs])
        style = axes_style.line_style(position)
        x = band.x / scale.divisor
        low, high = (np.clip(edge, 0.0, 1.0) if rises(metric) else edge for edge in (band.low, band.high))
        name = f"{label} (diverged)" if _diverged(comparison, label) else label
        axes.plot(x, band.mean, **style, label=name, drawstyle="steps-post")
        axes.fill_between(x, low, high, color=style["color"], alpha=0.18, linewidth=0, step="post")
        shown.append(band.mean)
    axes_style.format_axes(axes, title, scale.label, metric.replace("_", " "))
    if not any(map(len, shown)):  # every run diverged at once: a log scale would have nothing to show
        return np.concatenate(shown)
    axes.set_xscale("log")
    if metric == comparison.metric and isfinite(comparison.target):
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
    reached = f"the target: {describe_target(comparison)}"
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
