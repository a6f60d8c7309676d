"""Commands that make runs: run, resume and live."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asyncfed.cli.cluster_option import chosen_cluster, need_cluster, who_works
from asyncfed.cli.experiment_options import ExperimentOptions, takes_experiment
from asyncfed.cli.options import (
    Actors,
    CheckpointSeconds,
    Cluster,
    Force,
    Personalize,
    Plot,
    RunFile,
    Threads,
    Timeline,
)
from asyncfed.cli.output import announce_run_file, complaints, console, exit_by_verdict, print_note, print_run
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace

if TYPE_CHECKING:
    from asyncfed.experiment import Experiment
    from asyncfed.live.engine_protocol import Engine
    from asyncfed.runs.live import LiveProgress, LiveWatcher


@takes_experiment()
def run(
    options: ExperimentOptions,
    out: Annotated[
        Path | None, typer.Option(help="The run's file.", dir_okay=False, show_default="runs/NAME-SEED.sqlite")
    ] = None,
    threads: Threads = None,
    force: Force = False,
    plot: Plot = None,
    personalize: Personalize = False,
    checkpoint_seconds: CheckpointSeconds = 2.0,
    cluster: Cluster = None,
    workers: Actors = None,
) -> None:
    """Simulate an experiment. Ctrl-C stops it cleanly; `asyncfed resume` continues it."""
    need_cluster(workers, cluster)
    file = out or options.default_file()
    announce_run_file(file, force)
    chosen, data, problem = options.prepare()
    chosen = replace(chosen, strategy=options.defend(chosen.strategy, problem.num_clients))
    options.explain_privacy(chosen, problem)
    if chosen.measures_clients and data is not None:
        with complaints.status("comparing the clients' data"):
            verdict = chosen.measure_heterogeneity(data.clients).verdict
        print_note(verdict)

    from asyncfed import api  # when there is a bar, or was: they take a while to load
    from asyncfed.report.terminal.progress import run_bar

    with chosen_cluster(cluster, workers) as machines, run_bar(console, chosen, who=who_works(machines)) as watch:
        done = api.run(
            chosen,
            out=file,
            prepared=data,
            threads=threads,
            watch=watch,
            force=force,
            checkpoint_seconds=checkpoint_seconds,
            cluster=machines,
        )
    print_run(done, plot, clients=not options.names_preset, personalize=personalize)
    exit_by_verdict(done)


def resume(
    file: RunFile,
    experiment: Annotated[str | None, typer.Option(help="Check that the run is this experiment.")] = None,
    threads: Threads = None,
    plot: Plot = None,
    checkpoint_seconds: CheckpointSeconds = 2.0,
    cluster: Cluster = None,
    workers: Actors = None,
) -> None:
    """Continue an interrupted run.

    A simulated run reaches the bytes it would have reached uninterrupted.
    """
    from asyncfed import api
    from asyncfed.report.terminal.progress import run_bar

    need_cluster(workers, cluster)
    given = None if experiment is None else ExperimentOptions(experiment).build()
    recorded = api.load(file)
    clock = "time" if "live" in recorded.header else "virtual time"
    with (
        chosen_cluster(cluster, workers) as machines,
        run_bar(console, recorded.experiment, clock, who_works(machines)) as watch,
    ):
        done = api.resume(
            file,
            experiment=given,
            threads=threads,
            watch=watch,
            checkpoint_seconds=checkpoint_seconds,
            cluster=machines,
        )
    print_run(done, plot)
    exit_by_verdict(done)


@takes_experiment("delays", "lr")
def live(
    options: ExperimentOptions,
    out: Annotated[
        Path | None, typer.Option(help="The run's file.", dir_okay=False, show_default="runs/NAME-SEED-live.sqlite")
    ] = None,
    slow: Annotated[list[str] | None, typer.Option(help="Make a client slower: 3=10 is client 3, ten times.")] = None,
    task_seconds: Annotated[float, typer.Option(help="Seconds that a task takes at least.")] = 0.0,
    engine: Annotated[str, typer.Option(help="Where clients are: local, or ray for a Ray cluster.")] = "local",
    cluster: Annotated[
        str | None,
        typer.Option(help='With --engine ray: "auto", or HOST:PORT of its head node.', metavar="ADDRESS"),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(help="With --engine ray: 3=10.0.0.7 puts client 3 on that node; an id or resource will do."),
    ] = None,
    clients_per_process: Annotated[
        int | None, typer.Option(help="With --engine ray: so many clients share a process.", show_default="1")
    ] = None,
    ticket_seconds: Annotated[
        float, typer.Option(help="Seconds after which a ticket without a reply is lost.")
    ] = 600.0,
    power_safe: Annotated[
        bool, typer.Option("--power-safe", help="Wait for the disk at every commit, against power failures.")
    ] = False,
    threads: Threads = None,
    force: Force = False,
    plot: Plot = None,
    timeline: Timeline = None,
    metrics_port: Annotated[int | None, typer.Option(help="Offer metrics for Prometheus on this port.")] = None,
) -> None:
    """Run an experiment with every client a process of this machine, or an actor on a Ray cluster.

    A client has its own rows only. On a cluster each node makes or reads its clients' own rows; see docs/cluster.md.
    Ctrl-C stops the run cleanly; `asyncfed resume` continues it.
    """
    from asyncfed.api import run_live
    from asyncfed.live.checks import Limits

    where = choose_engine(engine, cluster, node, clients_per_process, slow, task_seconds)
    file = out or options.default_file("-live.sqlite")
    announce_run_file(file, force)
    made = options.prepare()
    chosen, data, problem = made.experiment, made.data, made.problem
    chosen = replace(chosen, strategy=options.defend(chosen.strategy, data.clients.num_clients))
    options.explain_privacy(chosen, problem)
    with _live_watcher(chosen, metrics_port) as watch:
        done = run_live(
            chosen,
            engine=where,
            out=file,
            prepared=data,
            limits=Limits.for_targets(data.clients.y, ticket_seconds),
            power_safe=power_safe,
            threads=threads,
            watch=watch,
            force=force,
        )
    print_run(done, plot, timeline, clients=not options.names_preset)
    exit_by_verdict(done)


@contextmanager
def _live_watcher(chosen: Experiment, metrics_port: int | None) -> Iterator[LiveWatcher]:
    """The progress bar and, if a port is given, the endpoint for Prometheus."""
    from asyncfed.report.terminal.progress import run_bar
    from asyncfed.report.trackers.prometheus_endpoint import metrics_endpoint

    with ExitStack() as both:
        watchers: list[LiveWatcher] = []
        if metrics_port is not None:
            watchers.append(both.enter_context(metrics_endpoint(metrics_port, chosen.name)))
        watchers.append(both.enter_context(run_bar(console, chosen, "time")))

        def watch(now: LiveProgress) -> None:
            for watcher in watchers:
                watcher(now)

        yield watch


def choose_engine(
    name: str,
    cluster: str | None,
    node: list[str] | None,
    clients_per_process: int | None,
    slow: list[str] | None,
    task_seconds: float,
) -> Engine:
    """The engine that `--engine` names, with what the other options say about it."""
    from asyncfed.cluster.live_engine import RayEngine
    from asyncfed.live.local.local_engine import LocalEngine

    slowed = tuple(parse_slow(text) for text in slow or [])
    if name == "ray":
        return RayEngine(
            address="auto" if cluster is None else cluster,
            nodes=tuple(parse_node(text) for text in node or []),
            clients_per_process=1 if clients_per_process is None else clients_per_process,
            slow=slowed,
            task_seconds=task_seconds,
        )
    if name != "local":
        raise ConfigError(f'There is no engine "{name}". Write --engine local or --engine ray.')
    given = {"--cluster": cluster, "--node": node, "--clients-per-process": clients_per_process}
    for option, value in given.items():
        if value not in (None, []):
            raise ConfigError(f"{option} is for clients on a cluster. Add --engine ray, or leave it out.")
    return LocalEngine(slow=slowed, task_seconds=task_seconds)


def parse_node(text: str) -> tuple[int, str]:
    """A `client=node` of --node.

    >>> parse_node("3=10.0.0.7")
    (3, '10.0.0.7')
    """
    client, _, name = text.partition("=")
    if not (client.isdecimal() and name):
        raise ConfigError(f'--node "{text}" is not understood; write --node 3=10.0.0.7 for client 3 on that node.')
    return int(client), name


def parse_slow(text: str) -> tuple[int, float]:
    """A `client=factor` of --slow.

    >>> parse_slow("3=10")
    (3, 10.0)
    """
    client, _, factor = text.partition("=")
    try:
        return int(client), float(factor)
    except ValueError:
        raise ConfigError(f'--slow "{text}" is not understood; write --slow 3=10 for client 3, ten times.') from None
