"""The command arena: every algorithm on the same problems, delays and splits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asyncfed.cli.cell_progress import cell_progress, split_names, stoppable
from asyncfed.cli.cluster_option import chosen_cluster
from asyncfed.cli.options import Cluster, OutFolder, Workers
from asyncfed.cli.output import console, print_line, save_figure

if TYPE_CHECKING:
    from rich.table import Table

    from asyncfed.arena.summary import Row

SHOWN = 15
"""Strategies in the table on the terminal."""


def arena(
    quick: Annotated[
        bool, typer.Option("--quick", help="Three cells and a handful of strategies, in a minute.")
    ] = False,
    problems: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    delays: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    splits: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    strategies: Annotated[
        str | None, typer.Option(help="Names, separated by commas; the baseline is always added.", show_default="all")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Fresh seeds.", show_default="5; 3 with --quick")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Settings tried for each strategy and cell.", show_default="6; 4 with --quick")
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    out_dir: OutFolder = Path("runs/arena"),
) -> None:
    """Run all strategies on the same cells, tuned alike.

    Writes a page with ranks, a table, and a picture. Stopped, it goes on where it was.
    """
    from asyncfed.arena.arena import plan_arena, run_arena
    from asyncfed.arena.summary import summarise
    from asyncfed.arena.tables import write_tables
    from asyncfed.report.figures.arena_figure import draw_ratios
    from asyncfed.report.page.arena_page import write_arena_page
    from asyncfed.runs.cores import thread_count

    plan = plan_arena(
        split_names(problems), split_names(delays), split_names(splits), split_names(strategies), seeds, trials, quick
    )
    count = thread_count(workers)
    print_line(
        f"arena: {len(plan.strategies)} strategies, {len(plan.cells)} cells, {plan.num_trials} settings tried, "
        f"{len(plan.seeds)} seeds; {f'{count} processes' if cluster is None else 'a cluster'}; results in {out_dir}"
    )
    per_cell = len(plan.strategies)
    with (
        stoppable(out_dir),
        chosen_cluster(cluster, workers) as machines,
        cell_progress(
            "strategies by cells", len(plan.cells) * per_cell, lambda done: f" (about {done // per_cell} cells)"
        ) as watch,
    ):
        results = run_arena(plan, out_dir, count, watch, machines)
    rows = summarise(results)
    console.print(_overall_table(rows))
    table, everything = write_tables(results, rows, out_dir)
    print_line(f"table: {table}")
    print_line(f"everything: {everything}")
    save_figure(draw_ratios(rows), out_dir / "arena.png")
    print_line(f"page: {write_arena_page(results, rows, out_dir / 'arena.html')}")


def _overall_table(rows: Sequence[Row]) -> Table:
    from rich.table import Table

    from asyncfed.arena.summary import overall

    table = Table("strategy", "mean rank", "times the best", "cells reached", "first group", box=None, pad_edge=False)
    found = overall(rows)
    cells = len({row.entry.cell for row in rows})
    for one in found[:SHOWN]:
        ratio = "not reached" if one.median_to_best is None else f"{one.median_to_best:.3g} x"
        mark = " *" if one.together else ""
        counts = (f"{one.cells_reached} of {cells}", f"{one.first_groups} of {cells}")
        table.add_row(one.strategy, f"{one.mean_rank:.1f}{mark}", ratio, *counts)
    if len(found) > SHOWN:
        table.add_row(f"and {len(found) - SHOWN} more")
    table.caption = "by virtual time to the target; * cannot be told from the best (Nemenyi, 5 %)"
    return table
