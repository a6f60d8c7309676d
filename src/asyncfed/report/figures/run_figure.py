"""The picture of one run: how far it got, on which clock, how stale its updates were, and who took part."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from asyncfed.analysis.plain_text import short
from asyncfed.analysis.protocols import ReportedRun
from asyncfed.report.figures import style

MOST_BARS = 50


def draw_run(run: ReportedRun) -> Figure:
    """Four panels: objective per round, objective per virtual second, staleness, and participation."""
    figure = style.blank(style.FULL_PAGE)
    panels = figure.subplots(2, 2)
    _draw_losses(panels[0, 0], run)
    _draw_clock(panels[0, 1], run)
    _draw_staleness(panels[1, 0], run.rounds)
    _draw_participation(panels[1, 1], run.participation())
    experiment = run.header["experiment"]
    title = f"{experiment['name']}: {strategy_words(experiment['strategy'])}, {run.verdict}"
    style.headline(figure, title, f"seed {experiment['seed']}; {run.reason}")
    return figure


def strategy_words(plain: dict[str, Any]) -> str:
    """A strategy's name and the setting that tells its readings apart.

    >>> strategy_words({"kind": "afl", "aggregate": "mixing"}), strategy_words({"kind": "fedavg"})
    ('afl (mixing)', 'fedavg')
    """
    reading = plain.get("aggregate", plain.get("mode"))
    kind = str(plain.get("kind", "custom strategy"))
    return f"{kind} ({reading})" if reading else kind


def _draw_losses(axes: Axes, run: ReportedRun) -> None:
    measured = run.evaluations
    rounds, shown = measured["round"], [measured["objective"]]
    axes.plot(rounds, measured["objective"], **style.line_look(0), **_dots(shown[0]), label="objective")
    if "pooled_loss" in measured:
        shown.append(measured["pooled_loss"])
        axes.plot(rounds, measured["pooled_loss"], **style.line_look(1), label="pooled loss")
    style.dress(axes, "Loss per round", "round", "loss")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    style.show_losses(axes, np.concatenate(shown))
    lines, names = axes.get_legend_handles_labels()
    if np.isfinite(measured.get("distance", np.array([np.nan]))).any():
        lines += _draw_distance(axes, rounds, measured["distance"])
        names.append("distance to optimum (right)")
    axes.legend(lines, names, fontsize=style.SMALL, frameon=False, labelcolor=style.INK)


def _draw_distance(axes: Axes, rounds: np.ndarray, distance: np.ndarray) -> list[Any]:
    beside = axes.twinx()
    lines = beside.plot(rounds, distance, color=style.FAINT, linewidth=1.0, alpha=0.8)
    style.show_losses(beside, distance)
    beside.set_ylabel("distance to optimum", fontsize=style.SMALL, color=style.FAINT)
    beside.tick_params(labelsize=style.SMALL, colors=style.FAINT, which="both")
    for side in ("top", "left", "bottom", "right"):
        beside.spines[side].set_visible(False)
    return lines


def _draw_clock(axes: Axes, run: ReportedRun) -> None:
    elapsed, objective = run.evaluations["elapsed"], run.evaluations["objective"]
    axes.plot(elapsed, objective, drawstyle="steps-post", **style.line_look(0), **_dots(objective))
    clock = "time, s" if "live" in run.header else "virtual time, s"
    style.dress(axes, "Loss on the clock", clock, "objective")
    style.show_losses(axes, objective)


def _draw_staleness(axes: Axes, rounds: dict[str, np.ndarray]) -> None:
    style.dress(axes, "Staleness of merged updates", "round", "versions since download")
    if not len(rounds["round"]):
        _say(axes, "no round was completed")
        return
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    number, largest, mean = rounds["round"], rounds["staleness_max"], rounds["staleness_mean"]
    axes.plot(number, largest, color=style.COLOURS[4], linewidth=0.9, label="largest", **_dots(largest))
    axes.plot(number, mean, color=style.COLOURS[0], linewidth=1.6, label="mean", **_dots(mean))
    highest = float(largest.max())
    axes.set_ylim(-0.02 * max(highest, 1.0), 1.2 * max(highest, 1.0))  # room for the legend above the lines
    axes.legend(fontsize=style.SMALL, frameon=False, ncols=2, loc="upper right", labelcolor=style.INK)


def _draw_participation(axes: Axes, merges: np.ndarray) -> None:
    if len(merges) > MOST_BARS:
        style.dress(axes, "Participation", "merged updates", "clients")
        axes.hist(merges, bins=_whole_bins(merges), color=style.COLOURS[0], edgecolor="white", linewidth=0.5)
        axes.axvline(float(merges.mean()), color=style.INK, linewidth=1.0, linestyle=(0, (4, 2)))
    else:
        style.dress(axes, "Participation", "client", "merged updates")
        axes.bar(np.arange(len(merges)), merges, color=style.COLOURS[0], width=0.8)
        axes.axhline(float(merges.mean()), color=style.INK, linewidth=1.0, linestyle=(0, (4, 2)))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(False, axis="x")
    axes.set_title(f"mean {short(float(merges.mean()))} (dashed)", fontsize=style.SMALL, color=style.FAINT, loc="right")


def _whole_bins(merges: np.ndarray) -> list[float]:
    """Edges between whole numbers, at most about 40 bins."""
    low, high = int(merges.min()), int(merges.max())
    step = max(1, -(-(high - low + 1) // 40))
    return [edge - 0.5 for edge in range(low, high + step + 1, step)]


def _dots(values: np.ndarray) -> dict[str, Any]:
    """A line through one or two points would be invisible or misleading without them."""
    return {"marker": "o", "markersize": 4.0} if np.isfinite(values).sum() < 3 else {}


def _say(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=style.FAINT, fontsize=style.MEDIUM)
