"""The command advise: which strategy, for these data and these stragglers?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from asyncfed.cli.cluster_option import chosen_cluster
from asyncfed.cli.experiment_options import DELAY_NAMES, ExperimentOptions, takes_experiment
from asyncfed.cli.options import Cluster, OutFolder, Workers
from asyncfed.cli.output import console, print_line, print_stopped

STRATEGY_NAMES = "fedavg,fedasync,fedbuff,afl,afl_delta_mean,ringmaster,fedcompass,scaffold_async"
"""Written out, for help is printed without importing what makes them; a test compares them."""


@takes_experiment("strategy", "rounds", "delays", "attack", "liars", "robust", "privacy", "epsilon", "compress")
def advise(
    options: ExperimentOptions,
    delays: Annotated[
        str | None,
        typer.Option(
            help=f"How slow clients are: {DELAY_NAMES}; a .csv file of past job times with columns client and seconds; "
            "or the .sqlite file of a recorded run.",
            show_default="those of the experiment",
        ),
    ] = None,
    objective: Annotated[
        Literal["time", "bytes", "energy", "worst_clients"],
        typer.Option(help="What to save until the target is reached; or the loss of the worst tenth of the clients."),
    ] = "time",
    strategies: Annotated[
        str | None,
        typer.Option(help="Names, separated by commas; fedavg is always added.", show_default=STRATEGY_NAMES),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How often the finalists are repeated, with fresh seeds.")] = 8,
    progress: Annotated[
        float, typer.Option(help="The target: this share of the way from the start to the best that any run reached.")
    ] = 0.95,
    budget: Annotated[
        float | None,
        typer.Option(help="Virtual seconds of each simulated run.", show_default="from a first run of FedAvg"),
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    out_dir: OutFolder = Path("runs/advise"),
) -> None:
    """Recommend a strategy for these data and delays.

    Several are simulated, each with many settings.
    """
    from asyncfed import api
    from asyncfed.report.page.html_page import plotly_script
    from asyncfed.report.terminal.advice_text import advice_text
    from asyncfed.report.terminal.progress import counting_bar

    plotly_script()  # complains now, not after minutes
    chosen = options.prepare()
    try:
        with (
            chosen_cluster(cluster, workers) as machines,
            counting_bar(console, "simulated runs, at most", 1) as watch,
        ):
            advice = api.advise(
                chosen.experiment,
                prepared=chosen.data,
                objective=objective,
                strategies=None if strategies is None else [name.strip() for name in strategies.split(",")],
                delays=delays,
                seeds=seeds,
                workers=workers,
                budget=budget,
                progress=progress,
                out_dir=out_dir,
                watch=watch,
                cluster=machines,
            )
    except KeyboardInterrupt:
        print_stopped(f"stopped; what was simulated is kept in {out_dir}, and the same command continues")
        raise typer.Exit(130) from None
    console.print(advice_text(advice))
    print_line(f"page: {advice.save(out_dir / 'advice.html')}")
    toml = advice.save_toml(out_dir / "recommended.toml")
    print_line(f"run it: asyncfed run {toml}, asyncfed live {toml}")
