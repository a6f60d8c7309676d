"""What every command prints with: results to standard output, complaints to standard error, figures to files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.markup import escape

from asyncfed.core.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from asyncfed.api import Run

console = Console()
complaints = Console(stderr=True)


def print_line(text: str) -> None:
    """A line as it is: without markup, colours of numbers or line breaks."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def print_note(text: str) -> None:
    """A line that can be skipped."""
    console.print(text, style="dim", highlight=False, markup=False)


def announce_run_file(file: Path, force: bool) -> None:
    """Say where the run will be, and refuse at once a place where it may not be: before any data are read."""
    from asyncfed.runs.run_file import check_run_file

    check_run_file(file, force)
    print_line(f"run file: {file}")


def print_stopped(text: str) -> None:
    """A line to standard error about a command that was interrupted."""
    complaints.print(text, highlight=False, markup=False)


def save_figure(figure: Figure, file: Path) -> None:
    """Write a figure to a .png or .pdf file, and print where it is."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=160)
    except (OSError, ValueError) as error:
        raise ConfigError(f"The figure {file} cannot be written ({error}). Name a .png or .pdf file.") from error
    print_line(f"figure: {file}")


def print_run(
    run: Run,
    plot: Path | None,
    timeline: Path | None = None,
    clients: bool = False,
    digests: Mapping[str, str] | None = None,
    personalize: bool = False,
) -> None:
    """The table of a run, with digests if there are any, and, if wanted, of its clients, and its figures."""
    from asyncfed.analysis.filtered_updates import filtered_clients
    from asyncfed.analysis.liar_influence import liar_influence
    from asyncfed.analysis.secure_sums import count_secure_sums, secure_sum_lines
    from asyncfed.core.record import UNSET
    from asyncfed.report.terminal.client_table import client_table
    from asyncfed.report.terminal.run_tables import filtered_table, run_table

    clients = clients and run.experiment.measures_clients
    console.print(run_table(run, digests, run.optimal_value if clients else None, liar_influence(run)))
    if run.experiment.privacy is not UNSET:
        from asyncfed.report.terminal.privacy_text import summary_lines

        for line in summary_lines(run.privacy()):
            print_line(line)
        print_note(f"`asyncfed privacy audit {run.path}` says what each client has lost, and what is not protected")
    left_out = filtered_clients(run.journal.event_rows())
    if left_out:
        console.print(filtered_table(left_out))
    if run.experiment.secure_aggregation is not UNSET:
        sums = count_secure_sums(run.journal.event_rows())
        for line in secure_sum_lines(sums, run.experiment.secure_aggregation):
            print_line(line)
    if personalize:
        console.print(client_table(run.personalize().table, console.width))
    elif clients:
        console.print(client_table(run.clients, console.width))
    if plot is not None:
        from asyncfed.report.figures.run_figure import draw_run

        save_figure(draw_run(run), plot)
    if timeline is not None:
        from asyncfed.report.figures.timeline_figure import draw_timeline

        save_figure(draw_timeline(run, run.journal.event_columns()), timeline)


def exit_by_verdict(run: Run) -> None:
    """Exit with 130 after a run that was interrupted, and with 1 after one that ended badly; say what to do next."""
    if run.writer is not None:
        print_note(f"still running: it is being written by {run.writer}")
        return
    if not run.finished:
        print_stopped(f"stopped; `asyncfed resume {run.path}` continues")
        raise typer.Exit(130)
    if run.verdict != "finished":
        reason = run.reason.removeprefix(f"{run.verdict}: ")
        complaints.print(f"[red]{run.verdict}[/]: {escape(reason)}. {escape(run.advice)}", highlight=False)
        raise typer.Exit(1)
