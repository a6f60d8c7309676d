"""The command that shows what delays are like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asyncfed.cli.output import console, print_line, save_figure

if TYPE_CHECKING:
    from asyncfed.delays import DelayDescription


def delays(
    source: Annotated[
        str,
        typer.Argument(
            help="Delays by name (`asyncfed list delays`), an experiment's .toml, a .csv of seconds, a run's .sqlite."
        ),
    ],
    num_clients: Annotated[int, typer.Option(help="How many clients there are.")] = 20,
    tickets: Annotated[int, typer.Option(help="How many tickets of each client are drawn.")] = 200,
    rows: Annotated[int, typer.Option(help="How many rows each client has.")] = 100,
    model_bytes: Annotated[int, typer.Option(help="How many bytes go down and up with a ticket.")] = 0,
    seed: Annotated[int, typer.Option(help="The seed of the run.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Also draw them into this PNG or PDF file.", dir_okay=False)] = None,
) -> None:
    """Show what delays are like: how long tickets take, and who is present."""
    from asyncfed.analysis.delay_sample import sample_delays
    from asyncfed.report.terminal.delay_table import delay_table

    description, words = _find(source)
    sample = sample_delays(description, num_clients, seed, tickets, rows, model_bytes)
    print_line(f"{source}: {words}")
    console.print(delay_table(sample), highlight=False)
    print_line(f"{num_clients} clients with {tickets} tickets each; absences are left out of the seconds")
    if out is not None:
        from asyncfed.report.figures.delay_figure import draw_delays

        save_figure(draw_delays(sample, source, words), out)


def _find(source: str) -> tuple[DelayDescription, str]:
    """The delays, and a few words about them."""
    from asyncfed.experiment import read_toml
    from asyncfed.presets import DELAYS, delays_named

    if source.endswith(".toml"):
        experiment = read_toml(source)
        return experiment.delays, f"the delays of experiment {experiment.name}"
    words = DELAYS[source][0] if source in DELAYS else f"durations from {source}"
    return delays_named(source), words
