"""The command communication: codecs against sending everything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asyncfed.cli.cell_progress import cell_progress, split_names, stoppable
from asyncfed.cli.options import OutFolder, Workers
from asyncfed.cli.output import console, print_line

if TYPE_CHECKING:
    from rich.table import Table

    from asyncfed.communication.claims import Claim
    from asyncfed.communication.summary import Row


def communication(
    quick: Annotated[bool, typer.Option("--quick", help="One problem, strategy and link, in seconds.")] = False,
    problems: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    codecs: Annotated[
        str | None,
        typer.Option(help="Names, separated by commas; sending everything is always added.", show_default="all"),
    ] = None,
    strategies: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    links: Annotated[str | None, typer.Option(help="Names, separated by commas.", show_default="all")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many.", show_default="5; of the network, and with --quick, 3")
    ] = None,
    workers: Workers = None,
    out_dir: OutFolder = Path("runs/communication"),
) -> None:
    """Compare codecs: bytes, uploads and seconds on slow links to a target.

    Writes a page with figures, tables and pictures. Stopped, it goes on where it was.
    """
    from asyncfed.communication.claims import judge
    from asyncfed.communication.study import plan_study, run_study
    from asyncfed.communication.summary import summarise
    from asyncfed.communication.tables import write_tables
    from asyncfed.report.figures.communication_figures import study_figures
    from asyncfed.report.figures.matplotlib_figures import save_png_and_pdf
    from asyncfed.report.page.communication_page import write_communication_page
    from asyncfed.report.page.html_page import plotly_script
    from asyncfed.runs.cores import thread_count

    plan = plan_study(
        split_names(problems), split_names(codecs), split_names(strategies), split_names(links), seeds, quick
    )
    plotly_script()
    count = thread_count(workers)
    print_line(
        f"communication: {len(plan.requests)} strategies with codecs, on {len(plan.requests[0].links)} links; "
        f"{count} processes; results in {out_dir}"
    )
    with stoppable(out_dir), cell_progress("strategies with codecs", len(plan.requests)) as watch:
        results = run_study(plan, out_dir, count, watch)
    rows = summarise(results)
    console.print(_savings_table(rows))
    claims = judge(rows)
    for claim in claims:
        print_line(_claim_line(claim))
    for path in write_tables(results, rows, out_dir):
        print_line(f"table: {path}")
    figures = study_figures(rows)
    for figure in figures:
        save_png_and_pdf(figure, out_dir)
    page = write_communication_page(results, rows, figures, out_dir)
    print_line(f"page: {page}")


def _claim_line(claim: Claim) -> str:
    measured = claim.interval
    number = "" if measured is None else f" {measured.mean:.3g} ({measured.low:.3g} to {measured.high:.3g})"
    return f"{claim.verdict}: {claim.problem}, {claim.words}:{number}; {claim.reason}"


def _savings_table(rows: Sequence[Row]) -> Table:
    """How many times less each codec needs than sending everything, on the slowest link."""
    from rich.table import Table

    link = rows[0].cell.link
    table = Table("problem", "strategy", "codec", "bytes up", "uploads", "seconds", "left", box=None, pad_edge=False)
    for row in rows:
        if row.cell.link == link:
            ratios = (row.savings[measure].ratio for measure in ("bytes_up", "uploads", "seconds"))
            found = [row.verdict if ratio is None else f"{ratio.mean:.3g} x" for ratio in ratios]
            table.add_row(
                row.cell.problem, row.cell.strategy, row.cell.codec, *found, f"{100 * row.least_left.mean:.2g} %"
            )
    table.caption = f"times less than sending everything, to the same target; {link.replace('_', ' ')}/s up"
    return table
