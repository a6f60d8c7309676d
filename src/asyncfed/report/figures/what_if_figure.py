"""The figure of one recorded run beside other strategies on the same clients."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from asyncfed.analysis.protocols import ReportedRun
from asyncfed.report.figures import axes_style


def draw_what_if(runs: Mapping[str, ReportedRun]) -> Figure:
    """Two panels: the objective over time, and per merged update."""
    figure = axes_style.new_figure((axes_style.FULL_PAGE[0], 4.2))
    clock, updates = figure.subplots(1, 2, sharey=True)
    for position, (label, run) in enumerate(runs.items()):
        measured = run.evaluations
        for axes, axis in ((clock, "elapsed"), (updates, "updates")):
            style = axes_style.line_style(position)
            axes.plot(measured[axis], measured["objective"], drawstyle="steps-post", **style, label=label)
    any_live = any("live" in run.header for run in runs.values())
    label = "virtual time, s; real time of the recorded run" if any_live else "virtual time, s"
    axes_style.format_axes(clock, "In virtual time", label, "objective")
    axes_style.format_axes(updates, "Per merged update", "merged updates", "")
    axes_style.set_loss_scale(clock, np.concatenate([run.evaluations["objective"] for run in runs.values()]))
    lines, names = clock.get_legend_handles_labels()
    figure.legend(
        lines, names, loc="outside lower center", ncols=min(4, len(names)), fontsize=axes_style.SMALL, frameon=False
    )
    axes_style.add_title(figure, "The same clients, other rules", "each client's k-th job takes what its k-th job took")
    return figure
