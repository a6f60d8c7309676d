"""The figure of a comparison of selections: what each changes against the baseline, measure by measure."""

from __future__ import annotations

from math import isfinite
from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from asyncfed.analysis.fairness import MEASURES, Effect, Fairness
from asyncfed.analysis.selections import BASELINE
from asyncfed.report.figures import axes_style, colours

TITLES = {
    "time_to_target": "Time to the target",
    "mean_loss": "Mean loss",
    "worst_loss": "Loss of the worst tenth",
    "loss_spread": "Spread of losses",
    "least_share": "Least heard client",
}
"""The measures that are drawn, in this order."""

COLOURS = {"better": colours.LINE_COLOURS[0], "worse": colours.LINE_COLOURS[1], "not told apart": colours.FAINT}


def draw_fairness(fairness: Fairness) -> Figure:
    """A row a selection, a panel a measure: its change against the baseline with its 95 % confidence interval.

    Blue is better and orange worse where the interval leaves no doubt; grey cannot be told apart. Left of the line is
    better in all panels but the last, the share of merges of the least heard client, which is drawn as it is.
    """
    names = [name for name in fairness.selections if name != BASELINE]
    seeds = len(fairness.seeds)
    words = wrap(
        f"Ratios to {BASELINE} selection after {fairness.seconds:.4g} s of virtual time, paired over {seeds} "
        f"seed{'s'[: seeds > 1]}, with 95 % confidence intervals; blue: better, orange: worse, grey: not told apart. "
        f"Losses are those of clients on their own {fairness.part} rows. Least heard: its merges, 1 being the mean.",
        150,
    )
    figure = axes_style.new_figure((12.0, 1.9 + 0.42 * max(1, len(names)) + 0.16 * len(words)))
    panels = figure.subplots(1, len(TITLES), sharey=True, squeeze=False)[0]
    for axes, (measure, title) in zip(panels, TITLES.items(), strict=True):
        _draw_measure(axes, fairness, names, measure)
        ratio = MEASURES[measure].compared_by == "ratio"
        axes_style.format_axes(axes, title, f"times that of {BASELINE}" if ratio else "merges over the mean", "")
        axes.grid(False, axis="y")
    panels[0].set_yticks(range(len(names)), names, fontsize=axes_style.SMALL)
    panels[0].set_ylim(len(names) - 0.4, -0.6)
    title = f"{fairness.comparison.name}: what ways of choosing clients buy and cost"
    axes_style.add_title(figure, title + "\n" * (len(words) - 1), "\n".join(words))
    return figure


def _draw_measure(axes: Axes, fairness: Fairness, names: list[str], measure: str) -> None:
    ratio = MEASURES[measure].compared_by == "ratio"
    line = 1.0 if ratio else fairness.mean(BASELINE, measure).mean
    limits = [line]
    for row, name in enumerate(names):
        effect = fairness.effect(name, measure)
        found = effect.interval if ratio else fairness.mean(name, measure)
        if not isfinite(found.mean):
            axes.text(0.5, row, "never", transform=axes.get_yaxis_transform(), fontsize=axes_style.SMALL, ha="center")
            continue
        colour = COLOURS[effect.verdict]
        limits.append(found.mean)
        if isfinite(found.low):
            axes.plot([found.low, found.high], [row, row], color=colour, linewidth=2.2)
            limits += [found.low, found.high]
        axes.plot(found.mean, row, "D", color=colour, markersize=5.5)
        _write_value(axes, effect, found.mean, row)
    axes.axvline(line, color=colours.INK, linewidth=1.0)
    if ratio:
        _show_ratios(axes, limits)
    else:
        axes.set_xlim(0.0, 1.1 * max(limits) or 1.0)


def _write_value(axes: Axes, effect: Effect, value: float, row: int) -> None:
    text = f"{value:.3g}×" if MEASURES[effect.measure].compared_by == "ratio" else f"{value:.2f}"
    size = axes_style.SMALL - 1
    axes.annotate(text, (value, row), (0, 5), textcoords="offset points", ha="center", fontsize=size, color=colours.INK)


def _show_ratios(axes: Axes, limits: list[float]) -> None:
    """A log scale with a few plain numbers."""
    low, high = min(limits) / 1.05, max(limits) * 1.05
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    wide = high / low > 4.0
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if wide else MaxNLocator(nbins=4, steps=[1, 2, 5]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_formatter(NullFormatter())
