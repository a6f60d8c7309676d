"""Commands that read a recorded run: show, export, report, verify and replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from asyncfed.cli.options import Personalize, Plot, RunFile, Threads, Timeline
from asyncfed.cli.output import console, exit_by_verdict, print_line, print_run, save_figure
from asyncfed.core.errors import JournalError

if TYPE_CHECKING:
    from asyncfed.api import Run
    from asyncfed.report.page.run_page import RunDescription

SHORT_DIGEST = 16
"""Hexadecimal digits that are enough to see whether two runs are the same."""


def show(
    file: RunFile,
    plot: Plot = None,
    timeline: Timeline = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print the experiment as TOML.")] = False,
    clients: Annotated[bool, typer.Option("--clients", help="Also show each client's loss and weight.")] = False,
    personalize: Personalize = False,
    full_digests: Annotated[bool, typer.Option("--full-digests", help="Also print the digests in full.")] = False,
) -> None:
    """Show what a run did and how it ended.

    The digests of its events and model are equal for equal runs.
    """
    from asyncfed.api import load
    from asyncfed.experiment import to_toml

    recorded = load(file)
    if toml:
        print(to_toml(recorded.experiment))
        return
    digests = _digests(recorded)
    shortened = {name: value[:SHORT_DIGEST] for name, value in digests.items()}
    print_run(recorded, plot, timeline, clients, shortened, personalize)
    for name, value in digests.items() if full_digests else ():
        print_line(f"{name}: {value}")  # a cell of the table would break it into two lines
    exit_by_verdict(recorded)


def _digests(recorded: Run) -> dict[str, str]:
    """The digests of a run's events and, if one was saved, of its model."""
    events = {"events, sha256": recorded.journal.sha256()}
    try:
        return events | {"model, sha256": recorded.sha256["params"]}
    except JournalError:
        return events


def export(
    file: RunFile,
    out: Annotated[
        str, typer.Argument(help="The file (.csv, .parquet; .json for a model) or folder to write, or a tracker's URI.")
    ],
    table: Annotated[
        Literal["evaluations", "rounds", "events", "clients"], typer.Option(help="Which of the run's tables.")
    ] = "evaluations",
    to: Annotated[
        Literal["table", "model", "tensorboard", "mlflow"],
        typer.Option(help="One table, the model for `asyncfed predict`, or the whole run for a tracker."),
    ] = "table",
    personalize: Annotated[
        bool, typer.Option("--personalize", help="With the model, also one of each client's own.")
    ] = False,
) -> None:
    """Write a run as CSV or Parquet, its model, or all for a tracker.

    One of its tables as CSV or Parquet, its model as JSON, or the whole run for TensorBoard or MLflow.
    """
    from asyncfed.api import load

    recorded = load(file)
    if to == "model":
        recorded.table_model(personalize).save(out)
    elif to == "tensorboard":
        from asyncfed.report.trackers.tensorboard_log import write_tensorboard

        write_tensorboard(recorded, Path(out))
    elif to == "mlflow":
        from asyncfed.report.trackers.mlflow_tracker import log_mlflow

        log_mlflow(recorded, out)
    else:
        from asyncfed.report.export import write_table

        tables: dict[str, Callable[[], dict[str, list[Any]]]] = {
            "evaluations": recorded.journal.evaluation_columns,
            "rounds": lambda: recorded.journal.columns("rounds"),
            "events": recorded.journal.event_columns,
            "clients": lambda: recorded.clients.to_lists(),
        }
        write_table(tables[table](), Path(out))
    print_line(f"wrote {out}")


def report(
    files: Annotated[list[Path], typer.Argument(help="Files of runs, as `run --out` wrote them.")],
    out: Annotated[Path, typer.Option(help="The page's file, .html.", dir_okay=False)] = Path("runs/report.html"),
) -> None:
    """Write one self-contained HTML page about one run or several."""
    from asyncfed.report.page.run_page import write_run_page

    page = write_run_page(out, list(map(_describe_run, files)), f"asyncfed report {' '.join(map(str, files))}")
    print_line(f"report: {page}")


def _describe_run(file: Path) -> RunDescription:
    """A run with how different its clients' data are, if the file says which data they were; prepared once."""
    from asyncfed.analysis.filtered_updates import filtered_clients
    from asyncfed.analysis.liar_influence import liar_influence
    from asyncfed.api import load
    from asyncfed.core.record import UNSET
    from asyncfed.experiment import to_toml
    from asyncfed.report.page.run_page import RunDescription

    recorded = load(file)
    experiment = recorded.experiment
    data = None if experiment.makes_rows_late else experiment.prepare_data()
    problem = experiment.problem(data)
    if problem.fingerprint() == recorded.header["problem"]:
        recorded = load(file, problem=problem)
        if not experiment.measures_clients:
            heterogeneity = "not measured: a private run"
        elif data is None:
            heterogeneity = "drawn from the law of a population"
        else:
            heterogeneity = experiment.measure_heterogeneity(data.clients).verdict
    else:
        heterogeneity = "a problem of your own, which the file does not hold"
    return RunDescription(
        *(recorded, to_toml(experiment), heterogeneity, recorded.sha256, recorded.known_clients),
        liars=liar_influence(recorded),
        filtered=filtered_clients(recorded.journal.event_rows()),
        privacy=None if experiment.privacy is UNSET else recorded.privacy(),
    )


def verify(file: RunFile, threads: Threads = None) -> None:
    """Replay a run's journal and compare what follows from it."""
    from asyncfed.api import load
    from asyncfed.api import verify as replay_and_compare
    from asyncfed.report.terminal.progress import counting_bar

    updates = load(file).evaluations["updates"].tolist()
    with counting_bar(console, "replaying", max([0, *updates])) as watch:
        verification = replay_and_compare(file, threads=threads, watch=watch)
    for line in verification.lines:
        console.print(line, markup=False)
    console.print("[green]verified[/]" if verification.ok else "[red]NOT verified[/]")
    raise typer.Exit(0 if verification.ok else 1)


def replay(
    file: RunFile,
    strategy: Annotated[list[str] | None, typer.Option(help="A strategy by name; may be repeated.")] = None,
    plot: Plot = None,
    threads: Threads = None,
) -> None:
    """Repeat a run in the simulator, or ask what others had done.

    As it was, or with its clients' durations and other strategies.
    """
    if not strategy:
        verify(file, threads)
        return
    from asyncfed.api import load, what_if
    from asyncfed.presets import strategy_like
    from asyncfed.report.terminal.what_if_table import what_if_table

    base = load(file).experiment.strategy
    runs = what_if(file, {name: strategy_like(name, base) for name in strategy}, threads=threads)
    console.print(what_if_table(runs))
    if plot is not None:
        from asyncfed.report.figures.what_if_figure import draw_what_if

        save_figure(draw_what_if(runs), plot)
