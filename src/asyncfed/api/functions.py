"""The public functions: `asyncfed.run` and its neighbours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from asyncfed.api.finished_run import Run
from asyncfed.cluster.live_engine import RayEngine
from asyncfed.delays import DelayDescription, DelayModel
from asyncfed.experiment import Experiment
from asyncfed.live.checks import Limits
from asyncfed.live.engine_protocol import Engine
from asyncfed.live.session import CheckpointPolicy
from asyncfed.problems.protocol import Problem
from asyncfed.runs import live as live_runs
from asyncfed.runs import resume as resumed_runs
from asyncfed.runs import simulate as simulated_runs
from asyncfed.runs import verify as verification
from asyncfed.runs import what_if as alternatives
from asyncfed.runs.given_problem import choose_problem
from asyncfed.runs.live import LiveProgress, LiveWatcher
from asyncfed.runs.other_machines import OtherMachines
from asyncfed.runs.progress import Progress, Watcher
from asyncfed.runs.result import RecordedRun, load_run
from asyncfed.runs.simulate import CHECKPOINT_SECONDS
from asyncfed.runs.verify import Verification
from asyncfed.strategies.protocol import Strategy

if TYPE_CHECKING:
    from asyncfed.data.data_source import PreparedData
    from asyncfed.report.figures.certificate_figure import DrawableCertificate
    from asyncfed.report.page.advice_page import Advice


def _public(recorded: RecordedRun) -> Run:
    return Run(recorded.journal, recorded.given_experiment, recorded.given_problem)


def run(
    experiment: Experiment,
    *,
    out: Path | str | None = None,
    problem: Problem | None = None,
    prepared: PreparedData | None = None,
    delays: DelayModel | None = None,
    threads: int | None = None,
    watch: Watcher | None = None,
    progress: bool = True,
    force: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    cluster: OtherMachines | None = None,
) -> Run:
    """Simulate an experiment in virtual time, to its end or until Ctrl-C.

    Args:
        experiment: what to run.
        out: the run's file; in memory if None.
        problem: what to learn in place of what the experiment describes, for data or models of your own. The run's
            file says so and keeps its fingerprint; it cannot have another number of clients than `num_clients`.
        prepared: the experiment's data, if `experiment.prepare_data()` has prepared them already.
        delays: the clients' clock in place of the experiment's, for a delay model of your own.
        threads: at least 1 (default: all cores). They change the speed and nothing else.
        watch: called about ten times a second with the `Progress` of the run.
        progress: whether a progress bar is shown: on standard error if that is a terminal and there is no `watch`.
        force: replace a file that exists already.
        checkpoint_seconds: wall-clock seconds between checkpoints, 0 or more.
        cluster: other machines that train the clients, an open `asyncfed.Cluster`; the run is the same.

    Returns:
        The run. After Ctrl-C its verdict is `interrupted`, and `resume` continues it if it has a file.

    >>> import asyncfed as af
    >>> af.run(af.presets.regression(rounds=3)).verdict
    'finished'
    """
    with _bar(experiment, progress and watch is None) as bar:
        return _public(
            simulated_runs.simulate(
                experiment,
                out=out,
                problem=problem,
                prepared=prepared,
                delays=delays,
                threads=threads,
                watch=watch or bar,
                force=force,
                checkpoint_seconds=checkpoint_seconds,
                cluster=cluster,
            )
        )


def _bar(experiment: Experiment, wanted: bool) -> AbstractContextManager[Watcher | None]:
    """The function that shows how far the run is; None where nobody would see it."""
    if not wanted or sys.stderr is None or not sys.stderr.isatty():  # asked first: importing rich takes a while
        return nullcontext()
    from asyncfed.report.terminal.progress import terminal_run_bar

    return terminal_run_bar(experiment)


def run_live(
    experiment: Experiment,
    *,
    engine: Engine | None = None,
    out: Path | str,
    problem: Problem | None = None,
    prepared: PreparedData | None = None,
    limits: Limits | None = None,
    checkpoints: CheckpointPolicy | None = None,
    power_safe: bool = False,
    threads: int | None = None,
    watch: LiveWatcher | None = None,
    force: bool = False,
) -> Run:
    """Run an experiment with real clients, to its end or until Ctrl-C. Its delays are real, not the experiment's.

    Args:
        experiment: what to run.
        engine: where the clients are (default: processes of this machine).
        out: the run's file.
        problem: what to learn in place of what the experiment describes, for data or models of your own.
        prepared: the experiment's data, if `experiment.prepare_data()` has prepared them already.
        limits: what a client's reply has to satisfy.
        checkpoints: how often the journal holds a checkpoint.
        power_safe: let every commit wait for the disk, so that not even a power failure undoes what was accepted.
        threads: at least 1 (default: all cores). They change the speed and nothing else.
        watch: called now and then with the `LiveProgress` of the run.
        force: replace a file that exists already.

    Returns:
        The run. After Ctrl-C its verdict is `interrupted`, and `resume` continues it.
    """
    return _public(
        live_runs.run_live(
            experiment,
            engine=engine,
            out=out,
            problem=problem,
            prepared=prepared,
            limits=limits,
            checkpoints=checkpoints,
            power_safe=power_safe,
            threads=threads,
            watch=watch,
            force=force,
        )
    )


def resume(
    path: Path | str,
    *,
    experiment: Experiment | None = None,
    problem: Problem | None = None,
    delays: DelayModel | None = None,
    engine: Engine | None = None,
    threads: int | None = None,
    watch: Callable[[Progress | LiveProgress], None] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    cluster: OtherMachines | None = None,
) -> Run:
    """Continue an interrupted run, simulated or live. A run that is finished is loaded.

    A simulated run goes on from its last checkpoint, to the bytes it would have reached uninterrupted. Of a live run,
    what was merged stays merged, and tickets that were out are lost.

    Args:
        path: the run's file.
        experiment: the run's experiment, if it has parts that the file cannot hold. It is compared with the file.
        problem: the run's problem, if it was given one. It is compared with the file.
        delays: the run's delay model, if a simulated run was given one.
        engine: where the clients of a live run are (default: as the file says).
        threads: at least 1 (default: all cores). They change the speed and nothing else.
        watch: called now and then with the `Progress` (simulated) or `LiveProgress` (live) of the run.
        checkpoint_seconds: wall-clock seconds between checkpoints of a simulated run, 0 or more.
        cluster: other machines that train the clients of a simulated run, an open `asyncfed.Cluster`.

    Returns:
        The run, as `run` or `run_live` would have returned it.
    """
    return _public(
        resumed_runs.resume(
            path,
            experiment=experiment,
            problem=problem,
            delays=delays,
            engine=engine,
            engines={"ray": RayEngine},
            threads=threads,
            watch=watch,
            checkpoint_seconds=checkpoint_seconds,
            cluster=cluster,
        )
    )


def load(path: Path | str, problem: Problem | None = None, *, experiment: Experiment | None = None) -> Run:
    """Open a run's file for reading.

    Args:
        path: the run's file.
        problem: the run's problem, if it was given one that its experiment does not describe.
        experiment: the run's experiment, if it has parts that the file cannot hold.

    Returns:
        The run.
    """
    return _public(load_run(path, experiment, problem))


def verify(
    path: Path | str,
    *,
    experiment: Experiment | None = None,
    problem: Problem | None = None,
    threads: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> Verification:
    """Check a finished run's file against its own digests, then replay its journal and compare all that follows.

    The replay gives the recorded arrivals to a new server and does every training, merge and measurement again. Client
    drift is not measured again.

    Args:
        path: the run's file.
        experiment: the run's experiment, if it has parts that the file cannot hold. It is compared with the file.
        problem: the run's problem, if it was given one. It is compared with the file.
        threads: at least 1 (default: all cores). They change the speed and nothing else.
        watch: called with the number of reports replayed so far.

    Returns:
        Whether all agrees, and a sentence for each check.
    """
    return verification.verify(path, experiment=experiment, problem=problem, threads=threads, watch=watch)


def certify(
    experiment: Experiment,
    *,
    seeds: int = 5,
    problem: Problem | None = None,
    threads: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> DrawableCertificate:
    """What is guaranteed for an experiment, beside what `seeds` runs of it do on the same data.

    The data stay those of the experiment's seed while clients' draws, batches and delays change from run to run, for
    that is what the theorems' expectations are over.

    Args:
        experiment: what is certified.
        seeds: how many runs, 0 or more; with 0 nothing is run, and the certificate says what is known before.
        problem: the linear or softmax problem to learn; None for the one the experiment describes.
        threads: how many threads compute, 1 or more (None: all cores); changes the speed and nothing else.
        watch: called with the number of finished runs after each.

    Returns:
        The certificate; `ok` is False if a measurement lies outside a bound.

    Raises:
        ConfigError: `seeds` is negative, or the problem is neither a linear model nor a softmax.

    >>> import asyncfed as af
    >>> certificate = af.certify(af.presets.regression(rounds=2), seeds=1)
    >>> certificate.ok, [g.name for g in certificate.applying]
    (True, [])
    """
    from asyncfed.certificates import certificate as certificates
    from asyncfed.report.figures.certificate_figure import DrawableCertificate

    found = certificates.certify(experiment, seeds=seeds, problem=problem, threads=threads, watch=watch)
    return DrawableCertificate.of(found)


def what_if(
    path: Path | str, strategies: Mapping[str, Strategy], *, problem: Problem | None = None, threads: int | None = None
) -> dict[str, Run]:
    """Simulate what other strategies would have made of a recorded run's clients.

    The k-th job of client c takes as long as its k-th job took in the recorded run, and is lost if that was lost. All
    else is the recorded run's experiment.

    Args:
        path: the recorded run's file.
        strategies: the strategies by label.
        problem: the run's problem, if it was given one. It is compared with the file.
        threads: at least 1 (default: all cores). They change the speed and nothing else.

    Returns:
        The recorded run under the label "recorded", then one simulated run a strategy.
    """
    found = alternatives.what_if(path, strategies, problem=problem, threads=threads)
    return {label: _public(each) for label, each in found.items()}


def advise(
    experiment: Experiment,
    *,
    objective: Literal["time", "bytes", "energy", "worst_clients"] = "time",
    problem: Problem | None = None,
    prepared: PreparedData | None = None,
    strategies: Sequence[str] | None = None,
    delays: DelayDescription | Path | str | None = None,
    seeds: int = 8,
    workers: int | None = None,
    budget: float | None = None,
    progress: float = 0.95,
    out_dir: Path | str = "runs/advise",
    watch: Callable[[int, int], None] | None = None,
    cluster: OtherMachines | None = None,
) -> Advice:
    """Which strategy for these data and these stragglers? Simulate several with many settings, and recommend one.

    All have the same data and the same budget of virtual time. Each one's few settings are searched with Optuna; the
    best are repeated with fresh seeds and compared pair by pair, also with synchronous FedAvg at its own best settings.
    Every simulated run is kept in `out_dir`: call it again after an interruption, and it continues to the same answer,
    whatever the number of workers. In a script, call it under `if __name__ == "__main__":`.

    Args:
        experiment: data, model, delays and local work; its strategy, budget and stopping are replaced. Rates and local
            epochs are searched as multiples of its own.
        objective: what counts: "time", "bytes" or "energy" until the target is reached, or the loss of the worst tenth
            of the clients at the end.
        problem: what to learn in place of what the experiment describes.
        prepared: the experiment's data, if `experiment.prepare_data()` has prepared them already.
        strategies: names as in `asyncfed list strategies`; None for those that make sense. FedAvg is always added.
        delays: in place of the experiment's: delays, a name, a .csv file of past job times (columns `client` and
            `seconds`), or the file of a recorded run.
        seeds: how often the finalists are repeated, at least 2; 8 or more for narrow intervals.
        workers: processes, at least 1 (default: one per usable core). They change the speed and nothing else.
        budget: virtual seconds of each run, positive; None for a few times what default FedAvg needs.
        progress: the target, as the share of the way from the start to the best that any run of the search reached,
            above 0 and below 1.
        out_dir: the folder of the simulated runs.
        watch: called as `watch(done, planned)` after each run.
        cluster: other machines that do the runs, an open `asyncfed.Cluster`, in place of `workers`.

    Returns:
        The advice: print it, `save` its page, `to_toml` what it recommends.

    Raises:
        ConfigError: an argument is out of range, Optuna is not installed, or no run learnt anything.
    """
    from asyncfed.advice.advisor import recommend
    from asyncfed.report.page.advice_page import Advice

    return Advice.of(
        recommend(
            experiment,
            choose_problem(experiment, problem, prepared),
            Path(out_dir),
            objective=objective,
            strategies=strategies,
            delays=delays,
            seeds=seeds,
            workers=workers,
            budget=budget,
            progress=progress,
            watch=watch,
            cluster=cluster,
            described=problem is None,
        )
    )
