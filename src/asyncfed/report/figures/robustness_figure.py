"""The picture of the robustness study: a square for each attack and defence, with its number, green if it holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from asyncfed.report.figures import axes_style, colours
from asyncfed.robustness.attacks import ATTACKS
from asyncfed.robustness.defences import DEFENCES
from asyncfed.robustness.problems import PROBLEMS
from asyncfed.robustness.scenarios import DELAYS, HONEST, Scenario
from asyncfed.robustness.summary import MOST_POINTS, MOST_RATIO, Row

HELD, BROKEN, WORSE = (0.84, 0.94, 0.89), (0.98, 0.88, 0.83), (0.95, 0.71, 0.60)
FAR = 5.0
"""How many times worse than the limit is drawn darker."""

SHARE = 0.3


def draw_matrices(rows: Sequence[Row]) -> Figure:
    """A panel for each problem and split, with the slowest delays and the share of liars nearest to 30 %."""
    shares = sorted({row.cell.share for row in rows if row.cell.attack != HONEST})
    share = min(shares, key=lambda value: abs(value - SHARE))
    delays = [name for name in DELAYS if any(row.cell.scenario.delays == name for row in rows)][-1]
    shown = [row for row in rows if row.cell.share == share and row.cell.scenario.delays == delays]
    scenarios = list(dict.fromkeys(row.cell.scenario for row in shown))
    attacks = [name for name in ATTACKS if any(row.cell.attack == name for row in shown)]
    defences = [name for name in DEFENCES if any(row.cell.defence == name for row in shown)]
    columns = len({scenario.split for scenario in scenarios})
    lines = -(-len(scenarios) // columns)
    size = (columns * (1.6 + 0.52 * len(defences)), 1.6 + lines * (1.5 + 0.24 * len(attacks)))
    figure = axes_style.new_figure((max(size[0], 7.0), size[1]))
    panels = figure.subplots(lines, columns, squeeze=False)
    for axes, scenario in zip(panels.flat, scenarios, strict=False):
        own = {(row.cell.attack, row.cell.defence): row for row in shown if row.cell.scenario == scenario}
        _draw(axes, scenario, attacks, defences, own)
    axes_style.add_title(
        figure,
        f"{100 * share:g} % of the clients lie: what each defence ends with",
        f"{DELAYS[delays][0]}. Times the honest run's excess loss, held up to {MOST_RATIO:g}; of the network, points "
        f"of accuracy, held down to -{MOST_POINTS:g}. Green holds.",
    )
    return figure


def _draw(
    axes: Axes,
    scenario: Scenario,
    attacks: Sequence[str],
    defences: Sequence[str],
    rows: dict[tuple[str, str], Row],
) -> None:
    squares = np.ones((len(attacks), len(defences), 3))
    for (attack, defence), row in rows.items():
        place = attacks.index(attack), defences.index(defence)
        squares[place] = _shade(row)
        axes.text(place[1], place[0], _text(row), ha="center", va="center", fontsize=6, color=colours.INK)
    axes.imshow(squares, aspect="auto")
    axes.set_yticks(range(len(attacks)), [name.replace("_", " ") for name in attacks], fontsize=7)
    names = [name.replace("_", " ") for name in defences]
    axes.set_xticks(range(len(defences)), names, fontsize=6, rotation=60, ha="right", rotation_mode="anchor")
    axes.tick_params(length=0, colors=colours.INK)
    axes.set_title(f"{scenario.problem}, {scenario.split}", fontsize=8, loc="left", color=colours.INK)
    for side in axes.spines.values():
        side.set_visible(False)


def _text(row: Row) -> str:
    if row.verdict not in ("held", "not held"):
        return row.verdict[:4]
    if PROBLEMS[row.cell.scenario.problem].judged_by == "accuracy":
        return "" if row.points is None else f"{-row.points.mean:+.1f}"
    return "" if row.ratio is None else f"{row.ratio.mean:.2g}"


def _shade(row: Row) -> tuple[float, float, float]:
    if row.held:
        return HELD
    if row.verdict != "not held":
        return WORSE
    by_points = PROBLEMS[row.cell.scenario.problem].judged_by == "accuracy"
    measured, limit = (row.points, MOST_POINTS) if by_points else (row.ratio, MOST_RATIO)
    return WORSE if measured is None or measured.mean > FAR * limit else BROKEN
