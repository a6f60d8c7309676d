"""Commands that run an experiment many times: compare, fairness, certify and reproduce."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from asyncfed.cli.cluster_option import chosen_cluster
from asyncfed.cli.experiment_options import ExperimentOptions, takes_experiment
from asyncfed.cli.options import Cluster, OutFolder, Threads, Workers
from asyncfed.cli.output import console, print_line, print_stopped, save_figure
from asyncfed.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from asyncfed.certificates import Certificate
    from asyncfed.problems.protocol import Problem
    from asyncfed.reproduce.verdicts import Finding

PAPER_STRATEGIES = "afl,afl_mixing,afl_delta_mean,sync"
TABLE_STRATEGIES = "scaffold_async,fedasync,fedbuff,fedavg"
"""What is compared if nothing is named, on presets and TOML files, and on tables."""
PROGRESS = "95 % of the way from the start to the best of any strategy"


@takes_experiment("strategy", "lr", "privacy", "epsilon")
def compare(
    options: ExperimentOptions,
    strategies: Annotated[
        str | None,
        typer.Option(
            help="Names (see `asyncfed list strategies`), separated by commas; the last is the baseline.",
            show_default=f"{PAPER_STRATEGIES}; for tables {TABLE_STRATEGIES}",
        ),
    ] = None,
    rate: Annotated[
        Literal["same", "own", "constant"],
        typer.Option(help="Learning-rate schedule: the experiment's for all, each strategy's own, or constant."),
    ] = "same",
    seeds: Annotated[int, typer.Option(help="How many seeds, counted from --seed.")] = 5,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What is compared: validation_loss, test_loss, objective, test_accuracy, ...",
            show_default="objective",
        ),
    ] = None,
    target_loss: Annotated[float | None, typer.Option(help="The loss to reach.", show_default=PROGRESS)] = None,
    target_accuracy: Annotated[
        float | None, typer.Option(help="The accuracy to reach, above 0 and at most 1, in place of a loss.")
    ] = None,
    workers: Workers = None,
    cluster: Cluster = None,
    out_dir: OutFolder = Path("runs/compare"),
) -> None:
    """Compare strategies on the same data, delays and seeds."""
    from asyncfed.analysis.comparison import compare as compare_strategies
    from asyncfed.presets import strategy_like
    from asyncfed.report.figures.comparison_figure import (
        draw_comparison,
        draw_measurements,
        draw_time_to_target,
        shown_measurements,
    )
    from asyncfed.report.terminal.progress import counting_bar
    from asyncfed.report.terminal.run_tables import comparison_table

    base, data, problem = options.prepare()
    usual = PAPER_STRATEGIES if options.names_preset else TABLE_STRATEGIES
    validates = data is not None and "validation" in data.held_out
    metric, target = _choose_target(metric, target_loss, target_accuracy, validates)
    names = [name.strip() for name in (strategies or usual).split(",")]
    count = problem.num_clients
    chosen = {name: options.defend(strategy_like(name, base.strategy, rate), count) for name in names}
    with (
        chosen_cluster(cluster, workers) as machines,
        counting_bar(console, "runs", len(names) * seeds) as watch,
    ):
        comparison = compare_strategies(
            base,
            chosen,
            range(base.seed, base.seed + seeds),
            metric=metric,
            target=target,
            prepared=data,
            workers=workers,
            watch=lambda done, total, label, number: watch(done),
            cluster=machines,
        )
    console.print(comparison_table(comparison, names[-1]))
    save_figure(draw_comparison(comparison), out_dir / "comparison.png")
    if len(shown_measurements(comparison)) > 1:
        save_figure(draw_measurements(comparison), out_dir / "measurements.png")
    save_figure(draw_time_to_target(comparison, names[-1]), out_dir / "time_to_target.png")


UNEQUAL = "unequal"
"""The experiment of `fairness` if none is named: clients differ, and some are slow."""


@takes_experiment("attack", "liars", "robust", "privacy", "epsilon", "compress", preset=UNEQUAL)
def fairness(
    options: ExperimentOptions,
    selections: Annotated[
        str | None,
        typer.Option(
            help="Ways of choosing clients, separated by commas: uniform (always), fair, minimum, oort, oort_minimum, "
            "pisces, power_of_choice, qfair.",
            show_default="all",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, counted from --seed.")] = 5,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Virtual seconds of every run.", show_default="what the experiment's budget comes to with uniform"
        ),
    ] = None,
    target_loss: Annotated[float | None, typer.Option(help="The objective to reach.", show_default=PROGRESS)] = None,
    workers: Workers = None,
    out_dir: OutFolder = Path("runs/fairness"),
) -> None:
    """Say what ways of choosing clients buy, and what they cost.

    The same experiment for the same virtual time: time to the target, mean and worst losses of clients, who is heard.
    If none is named, it is the preset `unequal`, in which stragglers hold data that nobody else has.
    """
    from asyncfed.analysis.fairness import compare_selections
    from asyncfed.analysis.selections import SELECTIONS
    from asyncfed.report.export import write_json, write_table
    from asyncfed.report.figures.fairness_figure import draw_fairness
    from asyncfed.report.terminal.fairness_text import fairness_table, fairness_words
    from asyncfed.report.terminal.progress import counting_bar

    base, data, _ = options.with_experiment(UNEQUAL).prepare()
    names = [name.strip() for name in selections.split(",")] if selections else list(SELECTIONS)
    with counting_bar(console, "runs", len({"uniform", *names}) * seeds) as watch:
        found = compare_selections(
            base,
            names,
            range(base.seed, base.seed + seeds),
            seconds=seconds,
            target=target_loss,
            prepared=data,
            workers=workers,
            watch=lambda done, total, label, number: watch(done),
        )
    console.print(fairness_table(found))
    for line in fairness_words(found):
        print_line(line)
    save_figure(draw_fairness(found), out_dir / "fairness.png")
    write_table(found.columns(), out_dir / "fairness.csv")
    write_json(found.to_plain(), out_dir / "fairness.json")
    print_line(f"numbers: {out_dir / 'fairness.csv'}, {out_dir / 'fairness.json'}")


def _choose_target(
    metric: str | None, loss: float | None, accuracy: float | None, held_out: bool
) -> tuple[str | None, float | None]:
    """The metric and the target that the options ask for; None where they leave it to the comparison."""
    if loss is not None and accuracy is not None:
        raise ConfigError("--target-loss and --target-accuracy are both given; name the one that is to be reached.")
    if accuracy is not None and metric is None:
        metric = "validation_accuracy" if held_out else "accuracy"
    if metric is not None and (loss if metric.endswith("accuracy") else accuracy) is not None:
        wrong, right = ("loss", "accuracy") if loss is not None else ("accuracy", "loss")
        raise ConfigError(f"--metric {metric} is no {wrong}; give --target-{right}.")
    return metric, accuracy if loss is None else loss


@takes_experiment("attack", "liars", "robust", "privacy", "epsilon", "compress")
def certify(
    options: ExperimentOptions,
    seeds: Annotated[int, typer.Option(help="Runs on the same data, for bounds on means; 0: run nothing.")] = 5,
    threads: Threads = None,
    why: Annotated[bool, typer.Option("--why", help="All reasons why a theorem does not apply, not just one.")] = False,
    out_dir: OutFolder = Path("runs/certify"),
) -> None:
    """Say what is guaranteed for an experiment, run it, draw both.

    The argument may also be a run's file.
    """
    from asyncfed import api, certificates
    from asyncfed.certificates.covered_settings import advise_settings
    from asyncfed.certificates.paper_setting import paper_sentence
    from asyncfed.report.terminal.certificate_text import (
        advice_text,
        best_clock_text,
        certificate_text,
        client_influence_text,
    )
    from asyncfed.report.terminal.progress import counting_bar

    certificate: Certificate
    problem: Problem | None = None
    if options.experiment is not None and options.experiment.endswith(".sqlite"):
        certificate = api.load(Path(options.experiment)).certificate()
    else:
        chosen, _, problem = options.prepare()
        with counting_bar(console, "runs", seeds) as watch:
            certificate = api.certify(chosen, seeds=seeds, problem=problem, threads=threads, watch=watch)
    console.print(certificate_text(certificate, why))
    if certificates.is_paper_regression(certificate):
        console.print(paper_sentence())
    console.print(client_influence_text(certificate.client_influence))
    console.print(best_clock_text(certificate.best_clock, certificate.best_clock_note))
    if certificate.runs:
        save_figure(certificate.plot(), out_dir / f"{certificate.name}.png")
    if not certificate.applying:
        console.print(advice_text(advise_settings(certificate.experiment, problem)), soft_wrap=True)
    raise typer.Exit(0 if certificate.ok else 1)


def reproduce(
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the rounds, 3 fractions, 2 seeds.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="A figure by name or number; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds (default: 5, or 2 with --quick).")] = None,
    out_dir: OutFolder = Path("runs/reproduce"),
    workers: Workers = None,
    cluster: Cluster = None,
    force: Annotated[bool, typer.Option("--force", help="Do finished runs again.")] = False,
) -> None:
    """Run the paper's experiments again and test its claims.

    Draws its figures too. Run it again to continue.
    """
    from asyncfed.report.terminal.progress import counting_bar
    from asyncfed.reproduce import reproduction
    from asyncfed.reproduce.cached_runs import cost

    wanted = reproduction.plan_reproduction(out_dir, quick=quick, only=only, seeds=seeds)
    if force:
        reproduction.delete_finished_runs(wanted)
    missing, needed = wanted.missing(), len(wanted.experiments)
    console.print(f"figures: {len(wanted.figures)}; runs: {needed}, of which done already: {needed - len(missing)}")
    try:
        with chosen_cluster(cluster, workers) as machines, ExitStack() as pools:
            pool = pools.enter_context(reproduction.open_workers(workers))
            there = pool if machines is None else pools.enter_context(machines.open_pool(advice=reproduction.ADVICE))
            with counting_bar(console, "client updates", sum(map(cost, missing))) as watch:
                reproduction.simulate_missing(wanted, there, watch)
            with console.status("drawing"):
                written = reproduction.write_results(wanted, pool)  # files of this machine
    except KeyboardInterrupt:
        print_stopped("stopped; the same command continues")
        raise typer.Exit(130) from None
    console.print(_findings_table(written.findings))
    print_line(f"page: {written.page}")


def _findings_table(findings: list[Finding]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table("claim", "reading", "number", "95 %", "verdict", box=None, pad_edge=False)
    for found in findings:
        interval = "" if found.low is None else f"{found.low:g} to {found.high:g}"
        number = "" if found.number is None else f"{found.number:g} {found.unit}"
        table.add_row(escape(found.claim), found.reading, number, interval, found.verdict)
    return table
