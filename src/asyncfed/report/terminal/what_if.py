"""One recorded run beside what other strategies would have made of the same clients: a table and a picture."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from asyncfed.analysis.protocols import ReportedRun
from asyncfed.report.figures import style
from asyncfed.report.terminal.run_tables import TIGHT
from asyncfed.report.units import quantity, short


def what_if_table(runs: Mapping[str, ReportedRun]) -> Table:
    """A row a run: how it ended, after how long, with what loss and staleness."""
    table = Table(title="the same clients, other rules", title_justify="left", **TIGHT)
    table.add_column("strategy", style="bold")
    for name in ("objective", "time", "updates", "lost", "staleness", "verdict"):
        table.add_column(name, justify="right")
    for label, run in runs.items():
        last = {name: float(values[-1]) for name, values in run.evaluations.items()}
        rounds = run.rounds
        stale = f"{short(float(rounds['staleness_mean'].mean()))}" if len(rounds["round"]) else "-"
        lost = short(int(rounds["lost"][-1])) if len(rounds["round"]) else "-"
        spent = quantity("elapsed", last["elapsed"])
        table.add_row(label, short(last["objective"]), spent, short(int(last["updates"])), lost, stale, run.verdict)
    return table


def draw_what_if(runs: Mapping[str, ReportedRun]) -> Figure:
    """Two panels: the objective on the clock, and per merged update."""
    figure = style.blank((style.FULL_PAGE[0], 4.2))
    clock, updates = figure.subplots(1, 2, sharey=True)
    for position, (label, run) in enumerate(runs.items()):
        measured = run.evaluations
        for axes, axis in ((clock, "elapsed"), (updates, "updates")):
            look = style.line_look(position)
            axes.plot(measured[axis], measured["objective"], drawstyle="steps-post", **look, label=label)
    style.dress(clock, "On the clock", "time, s", "objective")
    style.dress(updates, "Per merged update", "merged updates", "")
    style.show_losses(clock, np.concatenate([run.evaluations["objective"] for run in runs.values()]))
    lines, names = clock.get_legend_handles_labels()
    figure.legend(
        lines, names, loc="outside lower center", ncols=min(4, len(names)), fontsize=style.SMALL, frameon=False
    )
    style.headline(figure, "The same clients, other rules", "each client's k-th job takes what its k-th job took")
    return figure
