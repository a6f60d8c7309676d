"""The command line: parses, calls, prints. No logic."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from asyncfed import certificates
from asyncfed.analysis.comparison import compare as compare_strategies
from asyncfed.certificates.paper_setting import paper_sentence
from asyncfed.cli.flower_commands import flower
from asyncfed.core.errors import AsyncFedError, ConfigError, JournalError
from asyncfed.core.record import replace
from asyncfed.experiment import Experiment, changed, read_toml, to_toml
from asyncfed.live.checks import Limits
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.presets import (
    BUILT_IN,
    DELAYS,
    PRESETS,
    PROBLEMS,
    STRATEGIES,
    delays_named,
    preset,
    strategy_like,
)
from asyncfed.presets import (
    table as table_preset,
)
from asyncfed.report.export import write_table
from asyncfed.report.figures.certificate_figure import draw_certificate
from asyncfed.report.figures.comparison_figure import draw_comparison, draw_time_to_target
from asyncfed.report.figures.timeline_figure import draw_timeline
from asyncfed.report.figures.what_if_figure import draw_what_if
from asyncfed.report.page.run_page import ToldRun, write_run_page
from asyncfed.report.terminal.certificate_text import certificate_text, client_influence_text
from asyncfed.report.terminal.client_table import client_table
from asyncfed.report.terminal.progress import counting_bar, run_bar
from asyncfed.report.terminal.run_tables import comparison_table, run_table
from asyncfed.report.terminal.what_if_table import what_if_table
from asyncfed.report.trackers.mlflow_tracker import log_mlflow
from asyncfed.report.trackers.prometheus_endpoint import metrics_endpoint
from asyncfed.report.trackers.tensorboard_log import write_tensorboard
from asyncfed.reproduce import reproduction
from asyncfed.reproduce.cached_runs import cost
from asyncfed.reproduce.verdicts import Finding
from asyncfed.reproduce.worker_pool import workers as worker_processes
from asyncfed.runs import live as deploying
from asyncfed.runs import simulate as running
from asyncfed.runs.result import Run, load
from asyncfed.runs.what_if import what_if
from asyncfed.version import __version__

app = typer.Typer(
    help="Asynchronous federated learning that can be trusted.", no_args_is_help=True, pretty_exceptions_enable=False
)
console = Console()
complaints = Console(stderr=True)

What = Annotated[str, typer.Argument(help="A preset (see `asyncfed presets`) or a TOML file.")]
RunFile = Annotated[Path, typer.Argument(help="A run's file, as `run --out` wrote it.")]
Strategy = Annotated[str | None, typer.Option(help="Another strategy by name, with the same work.")]
Delays = Annotated[str | None, typer.Option(help="Other delays by name: none, laptop, stragglers, heavy_tailed.")]
Reading = Annotated[str | None, typer.Option(help="How a preset reads the paper: text or published.")]
Fraction = Annotated[float | None, typer.Option(help="Share of a preset's clients at work at once.")]
Clients = Annotated[int | None, typer.Option(help="Number of a preset's clients.")]
Rounds = Annotated[int | None, typer.Option(help="Rounds to run.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="Any other key: --set strategy.max_staleness=3")]
Rate = Annotated[
    str | None, typer.Option("--lr", help='Learning rate: a number, or "theory" for one a theorem that applies allows.')
]
DataName = Annotated[
    str | None, typer.Option("--data", help="In place of a preset: a .csv or .parquet file, or data by name.")
]
Target = Annotated[str | None, typer.Option(help="The column of --data to be foretold.")]
ClientColumn = Annotated[str | None, typer.Option(help="The column of --data that says who owns a row.")]
ProblemName = Annotated[str | None, typer.Option("--problem", help=f"For --data: {', '.join(PROBLEMS)}.")]
Preset = Annotated[str | None, typer.Option("--preset", help="The same as the argument.")]
Plot = Annotated[Path | None, typer.Option(help="Also draw the run into this PNG or PDF file.")]
Timeline = Annotated[Path | None, typer.Option(help="Also draw who did what when into this PNG or PDF file.")]
Threads = Annotated[int | None, typer.Option(help="Threads; changes the speed and nothing else.")]


@app.command()
def run(
    experiment: What = "regression",
    data: DataName = None,
    target: Target = None,
    client_column: ClientColumn = None,
    problem: ProblemName = None,
    out: Annotated[Path | None, typer.Option(help="The run's file (default: runs/NAME-SEED.sqlite).")] = None,
    strategy: Strategy = None,
    delays: Delays = None,
    reading: Reading = None,
    fraction: Fraction = None,
    clients: Clients = None,
    rounds: Rounds = None,
    seed: Seed = None,
    lr: Rate = None,
    settings: Settings = None,
    threads: Threads = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run's file if it exists.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw the run into this PNG or PDF file.")] = None,
    checkpoint_seconds: Annotated[float, typer.Option(help="Wall-clock time between checkpoints.")] = 2.0,
) -> None:
    """Simulate an experiment. Ctrl-C stops it cleanly; `asyncfed resume` continues it."""
    about = {"data": data, "target": target, "client_column": client_column, "problem": problem}
    chosen = _experiment(experiment, strategy, delays, reading, fraction, clients, rounds, seed, settings, lr, about)
    file = out or Path("runs") / f"{chosen.name}-{chosen.seed}.sqlite"
    prepared = chosen.prepare_data()
    for note in (*prepared.notes, chosen.measure_heterogeneity(prepared.clients).verdict):
        console.print(escape(note), style="dim", highlight=False)
    with run_bar(console, chosen) as watch:
        done = running.run(
            chosen, out=file, threads=threads, watch=watch, force=force, checkpoint_seconds=checkpoint_seconds
        )
    _conclude(done, plot, clients=data is not None)


@app.command()
def resume(
    file: RunFile,
    experiment: Annotated[str | None, typer.Option(help="Check that the run is this experiment.")] = None,
    threads: Threads = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw the run into this PNG or PDF file.")] = None,
    checkpoint_seconds: Annotated[float, typer.Option(help="Wall-clock time between checkpoints.")] = 2.0,
) -> None:
    """Continue an interrupted run, to the bytes it would have reached uninterrupted."""
    given = None if experiment is None else _experiment(experiment)
    recorded = load(file)
    if "live" in recorded.header:
        with run_bar(console, recorded.experiment, "wall") as watch:
            done = deploying.resume_live(file, experiment=given, threads=threads, watch=watch)
    else:
        with run_bar(console, recorded.experiment) as watch:
            done = running.resume(
                file, experiment=given, threads=threads, watch=watch, checkpoint_seconds=checkpoint_seconds
            )
    _conclude(done, plot)


@app.command()
def live(
    experiment: What = "regression",
    chosen_preset: Preset = None,
    out: Annotated[Path | None, typer.Option(help="The run's file (default: runs/NAME-SEED-live.sqlite).")] = None,
    strategy: Strategy = None,
    reading: Reading = None,
    fraction: Fraction = None,
    clients: Clients = None,
    rounds: Rounds = None,
    seed: Seed = None,
    settings: Settings = None,
    slow: Annotated[list[str] | None, typer.Option(help="Make a client slower: 3=10 is client 3, ten times.")] = None,
    task_seconds: Annotated[float, typer.Option(help="Least time that any job takes.")] = 0.0,
    ticket_seconds: Annotated[float, typer.Option(help="After this a ticket without an answer is lost.")] = 600.0,
    power_safe: Annotated[bool, typer.Option("--power-safe", help="Let every commit wait for the disk.")] = False,
    threads: Threads = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run's file if it exists.")] = False,
    plot: Plot = None,
    timeline: Timeline = None,
    metrics_port: Annotated[int | None, typer.Option(help="Serve metrics for Prometheus on this port.")] = None,
) -> None:
    """Run an experiment for real, every client a process. Ctrl-C stops it cleanly; `asyncfed resume` continues it."""
    chosen = _experiment(
        chosen_preset or experiment, strategy, None, reading, fraction, clients, rounds, seed, settings
    )
    file = out or Path("runs") / f"{chosen.name}-{chosen.seed}-live.sqlite"
    with _live_watch(chosen, metrics_port) as watch:
        done = deploying.run_live(
            chosen,
            engine=LocalEngine(slow=tuple(_slow(text) for text in slow or []), task_seconds=task_seconds),
            out=file,
            limits=Limits(ticket_seconds=ticket_seconds),
            power_safe=power_safe,
            threads=threads,
            watch=watch,
            force=force,
        )
    _conclude(done, plot, timeline)


@app.command()
def replay(
    file: RunFile,
    strategy: Annotated[list[str] | None, typer.Option(help="A strategy by name; may be repeated.")] = None,
    plot: Plot = None,
    threads: Threads = None,
) -> None:
    """Repeat a run in the simulator: as it was, or with its clients' durations and other strategies."""
    if not strategy:
        verify(file, threads)
    base = load(file).experiment.strategy
    runs = what_if(file, {name: strategy_like(name, base) for name in strategy or []}, threads=threads)
    console.print(what_if_table(runs))
    if plot is not None:
        _save(draw_what_if(runs), plot)


@app.command()
def verify(file: RunFile, threads: Threads = None) -> None:
    """Replay a run's journal and compare the digests of events and model."""
    with counting_bar(console, "replaying", max([0, *load(file).evaluations["updates"].tolist()])) as watch:
        verification = running.verify(file, threads=threads, watch=watch)
    for line in verification.lines:
        console.print(escape(line))
    console.print("[green]verified[/]" if verification.ok else "[red]NOT verified[/]")
    raise typer.Exit(0 if verification.ok else 1)


@app.command()
def show(
    file: RunFile,
    plot: Annotated[Path | None, typer.Option(help="Draw the run into this PNG or PDF file.")] = None,
    timeline: Timeline = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print the experiment as TOML.")] = False,
    clients: Annotated[bool, typer.Option("--clients", help="Also show how each client is served.")] = False,
) -> None:
    """Show what a run did and how it ended."""
    recorded = load(file)
    if toml:
        print(to_toml(recorded.experiment))
        return
    _conclude(recorded, plot, timeline, clients)


@app.command()
def export(
    file: RunFile,
    out: Annotated[str, typer.Argument(help="The file (.csv, .parquet) or folder to write, or a tracker's URI.")],
    table: Annotated[
        Literal["evaluations", "rounds", "events", "clients"], typer.Option(help="Which of the run's tables.")
    ] = "evaluations",
    to: Annotated[Literal["table", "tensorboard", "mlflow"], typer.Option(help="For whom.")] = "table",
) -> None:
    """Write a table of a run as CSV or Parquet, or the whole run for TensorBoard or MLflow."""
    recorded = load(file)
    if to != "table":
        write_tensorboard(recorded, Path(out)) if to == "tensorboard" else log_mlflow(recorded, out)
        console.print(f"wrote {out}", highlight=False, soft_wrap=True)
        return
    tables: dict[str, Callable[[], dict[str, list[Any]]]] = {
        "evaluations": recorded.journal.evaluation_columns,
        "rounds": lambda: recorded.journal.columns("rounds"),
        "events": recorded.journal.event_columns,
        "clients": lambda: recorded.clients.to_lists(),
    }
    write_table(tables[table](), Path(out))
    console.print(f"wrote {out}")


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(help="Files of runs, as `run --out` wrote them.")],
    out: Annotated[Path, typer.Option(help="The page, or a folder for it.")] = Path("runs/report.html"),
) -> None:
    """Write one self-contained HTML page about one run or several."""
    told = [ToldRun(r, to_toml(r.experiment), _heterogeneity(r), r.sha256, r.known_clients) for r in map(load, files)]
    page = write_run_page(out, told, f"asyncfed report {' '.join(map(str, files))}")
    console.print(f"report: {page}", highlight=False, soft_wrap=True)


@app.command()
def compare(
    experiment: What = "regression",
    strategies: Annotated[
        str, typer.Option(help="Names, separated by commas; the last is the baseline.")
    ] = "afl,afl_mixing,afl_delta_mean,sync",
    rate: Annotated[
        Literal["same", "own", "constant"],
        typer.Option(help="Learning-rate schedule: the experiment's for all, each strategy's own, or constant."),
    ] = "same",
    seeds: Annotated[int, typer.Option(help="How many seeds, counted from --seed.")] = 5,
    target: Annotated[float | None, typer.Option(help="Loss to reach (default: one that every run reached).")] = None,
    delays: Delays = None,
    reading: Reading = None,
    fraction: Fraction = None,
    clients: Clients = None,
    rounds: Rounds = None,
    seed: Seed = None,
    settings: Settings = None,
    workers: Annotated[int | None, typer.Option(help="Processes; changes the speed and nothing else.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("runs/compare"),
) -> None:
    """Run several strategies over several seeds on the same data and delays, and compare them."""
    base = _experiment(experiment, None, delays, reading, fraction, clients, rounds, seed, settings)
    names = [name.strip() for name in strategies.split(",")]
    chosen = {name: strategy_like(name, base.strategy, rate) for name in names}
    with counting_bar(console, "runs", len(names) * seeds) as watch:
        comparison = compare_strategies(
            base,
            chosen,
            range(base.seed, base.seed + seeds),
            workers=workers,
            target=target,
            watch=lambda done, total, label, number: watch(done),
        )
    console.print(comparison_table(comparison, names[-1]))
    _save(draw_comparison(comparison), out / "comparison.png")
    _save(draw_time_to_target(comparison, names[-1]), out / "time_to_target.png")


@app.command()
def certify(
    experiment: What = "regression",
    seeds: Annotated[int, typer.Option(help="Runs on the same data, for bounds on means; 0: look, do not run.")] = 5,
    strategy: Strategy = None,
    delays: Delays = None,
    reading: Reading = None,
    fraction: Fraction = None,
    clients: Clients = None,
    rounds: Rounds = None,
    seed: Seed = None,
    lr: Rate = None,
    settings: Settings = None,
    threads: Threads = None,
    why: Annotated[bool, typer.Option("--why", help="All reasons why a theorem does not apply, not just one.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("runs/certify"),
) -> None:
    """Say what is guaranteed for an experiment, run it, and draw both. EXPERIMENT may also be a run's file."""
    if experiment.endswith(".sqlite"):
        certificate = load(Path(experiment)).certificate()
    else:
        chosen = _experiment(experiment, strategy, delays, reading, fraction, clients, rounds, seed, settings, lr)
        with counting_bar(console, "runs", seeds) as watch:
            certificate = certificates.certify(chosen, seeds=seeds, threads=threads, watch=watch)
    console.print(certificate_text(certificate, why))
    if certificates.is_the_papers(certificate):
        console.print(paper_sentence())
    console.print(client_influence_text(certificate.client_influence))
    if certificate.runs:
        _save(draw_certificate(certificate), out / f"{certificate.name}.png")
    raise typer.Exit(0 if certificate.ok else 1)


@app.command()
def reproduce(
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the rounds, 3 fractions, 2 seeds.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="A figure by name or number; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds (default: 5, or 2 with --quick).")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the reproduction.")] = Path("runs/reproduce"),
    workers: Annotated[int | None, typer.Option(help="Processes; changes the speed and nothing else.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Do finished runs again.")] = False,
) -> None:
    """Run the paper's experiments again, draw its figures and judge its claims. Run it again to continue."""
    wanted = reproduction.asked(out, quick=quick, only=only, seeds=seeds)
    if force:
        reproduction.forget(wanted)
    missing, needed = wanted.missing(), len(wanted.experiments)
    console.print(f"figures: {len(wanted.figures)}; runs: {needed}, of which done already: {needed - len(missing)}")
    try:
        with worker_processes(workers) as crew:
            with counting_bar(console, "client updates", sum(map(cost, missing))) as watch:
                reproduction.simulate(wanted, crew, watch)
            with console.status("drawing"):
                written = reproduction.write(wanted, crew)
    except KeyboardInterrupt:
        complaints.print("stopped; the same command continues", highlight=False)
        raise typer.Exit(130) from None
    console.print(_findings_table(written.findings))
    console.print(f"page: {written.page}", highlight=False, soft_wrap=True)


@app.command()
def presets(name: Annotated[str | None, typer.Argument(help="Print this preset as TOML.")] = None) -> None:
    """List presets, strategies and delays by name, or print a preset as TOML."""
    if name is not None:
        print(to_toml(preset(name)()))
        return
    named = (("preset", PRESETS), ("strategy", STRATEGIES), ("delays", DELAYS), ("data", BUILT_IN))
    for title, entries in named:
        table = Table(title, "what it is", title_justify="left", box=None, pad_edge=False)
        for key, (words, *_) in entries.items():
            table.add_row(key, escape(words))
        console.print(table, "")


app.add_typer(flower, name="flower")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"asyncfed {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


def _experiment(
    what: str,
    strategy: str | None = None,
    delays: str | None = None,
    reading: str | None = None,
    fraction: float | None = None,
    clients: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    settings: list[str] | None = None,
    lr: str | None = None,
    about: dict[str, str | None] | None = None,
) -> Experiment:
    """The experiment the options describe."""
    only_presets: dict[str, Any] = {"reading": reading, "fraction": fraction, "num_clients": clients}
    asked = {key: value for key, value in only_presets.items() if value is not None}
    table: dict[str, Any] = {key: value for key, value in (about or {}).items() if value is not None}
    if table:
        if "data" not in table or what != "regression" or reading is not None:
            raise ConfigError("--target, --client-column and --problem go with --data, which takes a preset's place.")
        before = dict(_setting(text) for text in settings or [] if not text.startswith("strategy."))
        asked |= table | {"seed": seed or 0, "settings": before} | ({} if strategy is None else {"strategy": strategy})
        chosen = table_preset(asked.pop("data"), **asked)
    elif what.endswith(".toml"):
        if asked:
            raise ConfigError(f"{', '.join(asked)} shape presets; in a TOML file, write what you mean or use --set.")
        chosen = read_toml(what)
        if strategy is not None:
            chosen = replace(chosen, strategy=strategy_like(strategy, chosen.strategy))
    else:
        chosen = preset(what)(**asked, **({} if strategy is None else {"strategy": strategy}))
    changes: dict[str, Any] = {
        key: value for key, value in {"seed": seed, "budget.rounds": rounds}.items() if value is not None
    }
    if delays is not None:
        chosen = replace(chosen, delays=delays_named(delays))
    changes |= dict(_setting(text) for text in settings or [])
    chosen = changed(chosen, changes) if changes else chosen
    return chosen if lr is None else _at_rate(chosen, lr)


def _at_rate(chosen: Experiment, lr: str) -> Experiment:
    if lr == "theory":
        slowed, theorem = certificates.with_theory_rate(chosen)
        rate = slowed.strategy.work.learning_rate
        console.print(f"rate {rate:.4g}, constant: what {theorem.name} allows", style="dim", highlight=False)
        return slowed
    try:
        return changed(chosen, {"strategy.work.learning_rate": float(lr)})
    except ValueError:
        raise ConfigError(f'--lr is "{lr}"; it must be a positive number, or "theory".') from None


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f'--set "{text}" has no "="; write --set key=value, such as --set strategy.concurrency=3.')
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _findings_table(findings: list[Finding]) -> Table:
    table = Table("claim", "reading", "number", "95 %", "verdict", box=None, pad_edge=False)
    for found in findings:
        interval = "" if found.low is None else f"{found.low:g} to {found.high:g}"
        number = "" if found.number is None else f"{found.number:g} {found.unit}"
        table.add_row(escape(found.claim), found.reading, number, interval, found.verdict)
    return table


def _heterogeneity(recorded: Run) -> str:
    """How different the clients' data are, if the file says which data they were."""
    try:
        _ = recorded.problem
    except JournalError:
        return "a problem of your own, which the file does not hold"
    return recorded.experiment.measure_heterogeneity().verdict


def _save(figure: Any, file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=160)
    except (OSError, ValueError) as error:
        raise ConfigError(f"The figure {file} cannot be written ({error}). Name a .png or .pdf file.") from error
    console.print(f"figure: {file}", highlight=False, soft_wrap=True)


@contextmanager
def _live_watch(chosen: Experiment, metrics_port: int | None) -> Iterator[deploying.LiveWatcher]:
    """The bar and, if a port is given, the endpoint for Prometheus."""
    with ExitStack() as both:
        watchers: list[deploying.LiveWatcher] = []
        if metrics_port is not None:
            watchers.append(both.enter_context(metrics_endpoint(metrics_port, chosen.name)))
        watchers.append(both.enter_context(run_bar(console, chosen, "wall")))

        def watch(now: deploying.LiveProgress) -> None:
            for tell in watchers:
                tell(now)

        yield watch


def _slow(text: str) -> tuple[int, float]:
    client, _, times = text.partition("=")
    try:
        return int(client), float(times)
    except ValueError:
        raise ConfigError(f'--slow "{text}" is not understood; write --slow 3=10 for client 3, ten times.') from None


def _conclude(done: Run, plot: Path | None, timeline: Path | None = None, clients: bool = False) -> None:
    console.print(run_table(done))
    if clients:
        console.print(client_table(done.clients))
    if plot is not None:
        _save(done.plot(), plot)
    if timeline is not None:
        _save(draw_timeline(done, done.journal.event_columns()), timeline)
    if not done.finished:
        complaints.print(f"stopped; `asyncfed resume {done.path}` continues", highlight=False)
        raise typer.Exit(130)
    if done.verdict != "finished":
        complaints.print(f"[red]{done.verdict}[/]: {escape(done.reason)}. {escape(done.advice)}", highlight=False)
        raise typer.Exit(1)


def main() -> None:
    try:
        app()
    except AsyncFedError as error:
        complaints.print(f"[red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
