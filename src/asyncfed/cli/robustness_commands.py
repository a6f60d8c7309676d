"""The command robustness: attacks against defences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asyncfed.cli.cell_progress import cell_progress, split_names, stoppable
from asyncfed.cli.options import OutFolder, Workers
from asyncfed.cli.output import console, print_line, save_figure
from asyncfed.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from asyncfed.robustness.summary import Row


def robustness(
    quick: Annotated[bool, typer.Option("--quick", help="One scenario, in a minute.")] = False,
    problems: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    attacks: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    defences: Annotated[
        str | None,
        typer.Option(help="Names, separated by commas; undefended strategies are always added.", show_default="all"),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(help="Shares of clients that lie, separated by commas.", show_default="those of each problem"),
    ] = None,
    splits: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    delays: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    seeds: Annotated[int | None, typer.Option(help="How many.", show_default="5; 2 with --quick")] = None,
    workers: Workers = None,
    out_dir: OutFolder = Path("runs/robustness"),
) -> None:
    """Run attacks against defences, by the share of clients that lie.

    Writes a page with break points and costs, tables, and a picture. Stopped, it goes on where it was.
    """
    from asyncfed.report.figures.robustness_figure import draw_matrices
    from asyncfed.report.page.robustness_page import write_robustness_page
    from asyncfed.robustness.study import plan_study, run_study
    from asyncfed.robustness.summary import summarise
    from asyncfed.robustness.tables import write_tables
    from asyncfed.runs.cores import thread_count

    plan = plan_study(
        split_names(problems),
        split_names(attacks),
        split_names(defences),
        _shares(shares),
        split_names(splits),
        split_names(delays),
        seeds,
        quick,
    )
    count = thread_count(workers)
    scenarios = len({cell.scenario for cell in plan.cells})
    print_line(
        f"robustness: {len(plan.cells)} cells in {scenarios} scenarios, {len(plan.seeds)} seeds; {count} processes; "
        f"results in {out_dir}"
    )
    with stoppable(out_dir), cell_progress("cells", len(plan.cells)) as watch:
        results = run_study(plan, out_dir, count, watch)
    rows = summarise(results)
    console.print(_held_table(rows))
    for path in write_tables(results, rows, out_dir):
        print_line(f"table: {path}")
    save_figure(draw_matrices(rows), out_dir / "robustness.png")
    print_line(f"page: {write_robustness_page(results, rows, out_dir / 'robustness.html')}")


def _shares(text: str | None) -> list[float] | None:
    names = split_names(text)
    if names is None:
        return None
    try:
        return [float(name) for name in names]
    except ValueError:
        raise ConfigError(f'shares is "{text}"; write numbers between 0 and 0.5, such as 0.1,0.3.') from None


def _held_table(rows: Sequence[Row]) -> Table:
    """How often each defence holds, by the share of clients that lie."""
    from rich.table import Table

    shares = sorted({row.cell.share for row in rows})
    heads = ["nobody lies" if share == 0 else f"{100 * share:g} % lie" for share in shares]
    table = Table("defence", *heads, box=None, pad_edge=False)
    for name in dict.fromkeys(row.cell.defence for row in rows):
        counts = []
        for share in shares:
            own = [row.held for row in rows if row.cell.defence == name and row.cell.share == share]
            counts.append(f"{sum(own)} of {len(own)}")
        table.add_row(name, *counts)
    table.caption = "cells that hold: of all scenarios and attacks"
    return table
