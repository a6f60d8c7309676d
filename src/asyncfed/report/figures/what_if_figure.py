"""The figure of one recorded run beside other strategies on the same clients."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from asyncfed.analysis.protocols import ReportedRun
from asyncfed.report.figures import style


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
