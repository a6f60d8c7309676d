"""One recorded run beside other strategies on the same clients: a table in a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.table import Table

from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.protocols import ReportedRun
from asyncfed.report.terminal.run_tables import TIGHT
from asyncfed.report.units import format_quantity


def what_if_table(runs: Mapping[str, ReportedRun]) -> Table:
    """A row a run: how it ended, after how long, with what loss and staleness."""
    live = [label for label, run in runs.items() if "live" in run.header]
    caption = f"the time of {live[0]} is real" if live else None
    title = "the same clients, other rules"
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", **TIGHT)
    table.add_column("strategy", style="bold")
    for name in ("objective", "virtual\ntime", "updates", "lost", "staleness", "verdict"):
        table.add_column(name, justify="right")
    for label, run in runs.items():
        last = {name: float(values[-1]) if len(values) else math.nan for name, values in run.evaluations.items()}
        rounds = run.rounds
        stale = f"{format_number(float(rounds['staleness_mean'].mean()))}" if len(rounds["round"]) else "-"
        lost = format_number(int(rounds["lost"][-1])) if len(rounds["round"]) else "-"
        spent = format_quantity("elapsed", last["elapsed"])
        table.add_row(
            label,
            format_number(last.get("objective", math.nan)),
            spent,
            format_number(last["updates"]),
            lost,
            stale,
            run.verdict,
        )
    return table
