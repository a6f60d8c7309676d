"""The figure of one run: losses and accuracies per round and per second, staleness, and how often clients took part."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.protocols import ReportedRun
from asyncfed.report.figures import axes_style, colours
from asyncfed.report.strategy_label import strategy_label

MOST_BARS = 50
WIDE_PAGE = (14.0, 7.0)
LOSSES = {"objective": "objective", "pooled_loss": "pooled loss", "validation_loss": "validation", "test_loss": "test"}
ACCURACIES = {"accuracy": "training", "validation_accuracy": "validation", "test_accuracy": "test"}
"""What is drawn, if it was measured, and what the legend calls it."""


def draw_run(run: ReportedRun) -> Figure:
    """Losses per round and over time, staleness and participation; and accuracies, if they were measured."""
    has_accuracy = any(name in run.evaluations for name in ACCURACIES)
    figure = axes_style.new_figure(WIDE_PAGE if has_accuracy else axes_style.FULL_PAGE)
    panels = figure.subplots(2, 3 if has_accuracy else 2)
    clock = "time, s" if "live" in run.header else "virtual time, s"
    _draw_losses(panels[0, 0], run)
    _draw_clock(panels[0, 1], run, clock)
    if has_accuracy:
        _draw_accuracies(panels[0, 2], run, "round", "Accuracy per round", "round")
        _draw_accuracies(panels[1, 2], run, "elapsed", "Accuracy over time", clock)
    _draw_staleness(panels[1, 0], run.rounds)
    _draw_participation(panels[1, 1], run.participation_of_known(), int(run.header["num_clients"]))
    experiment = run.header["experiment"]
    title = f"{experiment['name']}: {strategy_label(experiment['strategy'])}, {run.verdict}"
    axes_style.add_title(figure, title, f"seed {experiment['seed']}; {run.reason}")
    return figure


def _draw_losses(axes: Axes, run: ReportedRun) -> None:
    measured = run.evaluations
    rounds, shown = measured["round"], []
    for place, (name, label) in enumerate(LOSSES.items()):
        if name in measured:
            shown.append(measured[name])
            axes.plot(rounds, measured[name], **axes_style.line_style(place), **_dots(measured[name]), label=label)
    axes_style.format_axes(axes, "Loss per round", "round", "loss")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not shown:  # a private run
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=colours.FAINT)
        return
    axes_style.set_loss_scale(axes, np.concatenate(shown))
    _mark_kept(axes, run, "round")
    lines, names = axes.get_legend_handles_labels()
    if np.isfinite(measured.get("distance", np.array([np.nan]))).any():
        lines += _draw_distance(axes, rounds, measured["distance"])
        names.append("distance to optimum (right)")
    axes.legend(lines, names, fontsize=axes_style.SMALL, frameon=False, labelcolor=colours.INK)


def _draw_distance(axes: Axes, rounds: np.ndarray, distance: np.ndarray) -> list[Any]:
    beside = axes.twinx()
    lines = beside.plot(rounds, distance, color=colours.FAINT, linewidth=1.0, alpha=0.8)
    axes_style.set_loss_scale(beside, distance)
    beside.set_ylabel("distance to optimum", fontsize=axes_style.SMALL, color=colours.FAINT)
    beside.tick_params(labelsize=axes_style.SMALL, colors=colours.FAINT, which="both")
    for side in ("top", "left", "bottom", "right"):
        beside.spines[side].set_visible(False)
    return lines


def _draw_clock(axes: Axes, run: ReportedRun, clock: str) -> None:
    elapsed, shown = run.evaluations["elapsed"], []
    for place, (name, label) in enumerate(LOSSES.items()):
        if name in run.evaluations and name != "pooled_loss":
            values = run.evaluations[name]
            shown.append(values)
            style = axes_style.line_style(place)
            axes.plot(elapsed, values, drawstyle="steps-post", **style, **_dots(values), label=label)
    axes_style.format_axes(axes, "Loss over time", clock, "objective" if len(shown) == 1 else "loss")
    if shown:
        axes_style.set_loss_scale(axes, np.concatenate(shown))
        _mark_kept(axes, run, "elapsed")


def _draw_accuracies(axes: Axes, run: ReportedRun, against: str, title: str, x_label: str) -> None:
    """Accuracies have the colours and dashes of the losses on the same rows."""
    places = {"accuracy": 0, "validation_accuracy": 2, "test_accuracy": 3}
    lowest = 1.0
    for name, label in ACCURACIES.items():
        if name in run.evaluations:
            values = run.evaluations[name]
            lowest = min([lowest, *values[1:]])  # the first model has learnt nothing, and may be right about no row
            axes.plot(
                run.evaluations[against], values, **axes_style.line_style(places[name]), **_dots(values), label=label
            )
    axes_style.format_axes(axes, title, x_label, "share of rows that are right")
    if lowest < 1.0:
        axes.set_ylim(max(0.0, lowest - 0.3 * (1.0 - lowest)), 1.0 + 0.05 * (1.0 - lowest))
    _mark_kept(axes, run, against)
    axes.legend(fontsize=axes_style.SMALL, frameon=False, loc="lower right", labelcolor=colours.INK)


def _mark_kept(axes: Axes, run: ReportedRun, against: str) -> None:
    """Where the model was measured that the run is left with, if that is not its last."""
    places = run.evaluations[against]
    if len(places) and run.kept < len(places) - 1:
        axes.axvline(
            float(places[run.kept]), color=colours.INK, linewidth=1.0, linestyle=(0, (1, 2)), label="model kept"
        )


def _draw_staleness(axes: Axes, rounds: dict[str, np.ndarray]) -> None:
    axes_style.format_axes(axes, "Staleness of merged updates", "round", "versions since download")
    if not len(rounds["round"]):
        _write_message(axes, "no round was completed")
        return
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    number, largest, mean = rounds["round"], rounds["staleness_max"], rounds["staleness_mean"]
    axes.plot(number, largest, color=colours.LINE_COLOURS[4], linewidth=0.9, label="largest", **_dots(largest))
    axes.plot(number, mean, color=colours.LINE_COLOURS[0], linewidth=1.6, label="mean", **_dots(mean))
    highest = float(largest.max())
    axes.set_ylim(-0.02 * max(highest, 1.0), 1.2 * max(highest, 1.0))  # room for the legend above the lines
    axes.legend(fontsize=axes_style.SMALL, frameon=False, ncols=2, loc="upper right", labelcolor=colours.INK)


def _draw_participation(axes: Axes, merges: np.ndarray, num_clients: int) -> None:
    if not len(merges):
        axes_style.format_axes(axes, "Participation", "merged updates", "clients")
        _write_message(axes, f"none of {num_clients:,} clients was merged")
        return
    if len(merges) > MOST_BARS or len(merges) < num_clients:
        axes_style.format_axes(axes, "Participation", "merged updates", "clients")
        axes.hist(merges, bins=_whole_bins(merges), color=colours.LINE_COLOURS[0], edgecolor="white", linewidth=0.5)
        axes.axvline(float(merges.mean()), color=colours.INK, linewidth=1.0, linestyle=(0, (4, 2)))
    else:
        axes_style.format_axes(axes, "Participation", "client", "merged updates")
        axes.bar(np.arange(len(merges)), merges, color=colours.LINE_COLOURS[0], width=0.8)
        axes.axhline(float(merges.mean()), color=colours.INK, linewidth=1.0, linestyle=(0, (4, 2)))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(False, axis="x")
    never = f"; {num_clients - len(merges):,} clients never" if len(merges) < num_clients else ""
    mean = f"mean {format_number(float(merges.mean()))} (dashed){never}"
    axes.set_title(mean, fontsize=axes_style.SMALL, color=colours.FAINT, loc="right")


def _whole_bins(merges: np.ndarray) -> list[float]:
    """Edges between whole numbers, at most about 40 bins."""
    low, high = int(merges.min()), int(merges.max())
    step = max(1, -(-(high - low + 1) // 40))
    return [edge - 0.5 for edge in range(low, high + step + 1, step)]


def _dots(values: np.ndarray) -> dict[str, Any]:
    """A line through one or two points would be invisible or misleading without them."""
    return {"marker": "o", "markersize": 4.0} if np.isfinite(values).sum() < 3 else {}


def _write_message(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=colours.FAINT, fontsize=axes_style.MEDIUM)
