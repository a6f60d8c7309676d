"""Live runs: the same experiment with real clients and a real clock, from the header to the verdict."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.record import ValidationError, from_plain, replace, to_plain
from asyncfed.engine.model_shapes import with_model_shapes
from asyncfed.engine.plan import trusted_shard
from asyncfed.experiment import Experiment
from asyncfed.live.checks import Limits
from asyncfed.live.engine_protocol import Engine
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.live.session import CheckpointPolicy, LiveSession
from asyncfed.problems.client_measurements import check_measurable
from asyncfed.problems.client_sizes import require_listed
from asyncfed.problems.protocol import Problem, ShardedProblem
from asyncfed.runs.cores import thread_count
from asyncfed.runs.given_problem import choose_problem, stored_problem
from asyncfed.runs.header import check_same_problem, new_header, same_experiment
from asyncfed.runs.interruption import interruptible
from asyncfed.runs.measuring_thread import MeasuringThread
from asyncfed.runs.progress import finishing, progress, seal
from asyncfed.runs.result import RecordedRun
from asyncfed.runs.run_file import open_to_resume
from asyncfed.store.journal import Journal

if TYPE_CHECKING:
    from asyncfed.data.data_source import PreparedData


class LiveProgress(NamedTuple):
    """How far a live run is: what a progress bar and an exporter of metrics need.

    `set_aside` are the clients excluded for their faults; the exporter's metric has that name. `filtered` is how many
    updates of each client the rule has left out.
    """

    rounds: int
    updates: int
    elapsed: float
    objective: float
    version: int
    in_flight: int
    lost: int
    refused: int
    set_aside: int
    filtered: Mapping[int, int]
    skipped: int = 0


LiveWatcher = Callable[[LiveProgress], None]


def live_progress(session: LiveSession) -> LiveProgress:
    """How far this session is at the moment."""
    return LiveProgress(
        *progress(session.state),
        session.state.version,
        len(session.in_flight()),
        session.lost,
        session.refused,
        len(session.excluded),
        session.filtered,
        session.skipped,
    )


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
) -> RecordedRun:
    """Run an experiment with real clients, to its end or until Ctrl-C; see `asyncfed.run_live`."""
    engine = engine or LocalEngine()
    check_fit(experiment)
    own_problem = problem is not None
    problem = choose_problem(experiment, problem, prepared)
    require_listed(problem.num_clients, "A live run has a connection to each client: it")
    experiment.run_strategy(problem.num_clients).check(problem.num_clients)
    engine.check(problem)
    if isinstance(problem, ShardedProblem):  # else the data are with the clients
        check_measurable(problem, getattr(experiment.strategy, "work", None))
    trusted_shard(problem, experiment.plan(1, problem.num_clients))
    with_model_shapes(experiment.run_strategy(problem.num_clients), problem)
    live = {
        "engine": to_plain(engine),
        "absent": list(engine.absent(problem.num_clients)),
        "limits": to_plain(limits or Limits.for_targets(getattr(problem, "y", None))),
        "saving": to_plain(checkpoints or CheckpointPolicy()),
        "power_safe": power_safe,
    }
    journal = Journal.create(out, new_header(experiment, problem, own_problem=own_problem, live=live), replace=force)
    with finishing(journal):
        return _drive(experiment, engine, problem, journal, live, threads, watch)


def resume_live(
    path: Path | str,
    *,
    engine: Engine | None = None,
    engines: Mapping[str, type[Engine]] | None = None,
    experiment: Experiment | None = None,
    problem: Problem | None = None,
    threads: int | None = None,
    watch: LiveWatcher | None = None,
) -> RecordedRun:
    """Continue a live run that was interrupted or killed. What was merged stays; tickets that were out are lost.

    `engines` are those that can be started from what the file says, by their kind, besides `LocalEngine`.
    """
    journal = open_to_resume(path)
    with finishing(journal):
        header = journal.header()
        if "live" not in header:
            raise JournalError(f"{path} is a simulated run. Continue it with `asyncfed resume {path}`.")
        experiment = same_experiment(header, experiment, journal.path)
        problem = stored_problem(experiment, problem)
        check_same_problem(header, problem, path)
        if header["verdict"] != "interrupted":
            journal.rehash()
            return RecordedRun(journal, experiment, problem)
        engine = engine or _read_engine(header["live"], path, engines or {})
        engine.check(problem)
        return _drive(experiment, engine, problem, journal, header["live"], threads, watch)


def check_fit(experiment: Experiment) -> None:
    """Refuse what only a simulation can do."""
    if experiment.churn:
        raise ConfigError("churn is set, but in a live run clients come and go by themselves. Remove it.")
    if experiment.evaluation.drift:
        raise ConfigError(
            "evaluation.drift is set, but it needs every client's data in one place. Remove it, or simulate the run."
        )


def _read_engine(live: dict[str, Any], path: Path | str, engines: Mapping[str, type[Engine]]) -> Engine:
    """The engine that a live run's header describes."""
    kind = live["engine"].get("kind")
    if kind == "flower":
        raise JournalError(f"{path} was run on Flower. Continue it with `flwr run` and the same journal.")
    try:
        return from_plain(live["engine"], engines.get(kind, LocalEngine))
    except ValidationError as error:
        raise JournalError(
            f"{path} was run on an engine that cannot be started from its file ({error}). Pass it again: "
            "af.resume(path, engine=...)."
        ) from error


class _Control(NamedTuple):
    stop_requested: Callable[[], bool]
    report_progress: Callable[[], None]


def _drive(
    experiment: Experiment,
    engine: Engine,
    problem: Problem,
    journal: Journal,
    live: dict[str, Any],
    threads: int | None,
    watch: LiveWatcher | None,
) -> RecordedRun:
    if live["power_safe"]:
        journal.survive_power_loss()
    session = LiveSession(
        problem,
        replace(experiment.plan(thread_count(threads), problem.num_clients), absent=tuple(live["absent"])),
        journal,
        name=os.urandom(8).hex(),
        limits=from_plain(live["limits"], Limits),
        checkpoints=from_plain(live["saving"], CheckpointPolicy),
    )
    with interruptible() as interrupted, MeasuringThread() as thread:
        begun = False

        def report_progress() -> None:
            if watch is not None:
                watch(live_progress(session))

        def begin() -> None:
            nonlocal begun
            session.resume()
            session.evaluate_with(thread.submit)
            begun = True

        engine.drive(session, problem, begin, _Control(interrupted.is_set, report_progress))
        if begun:
            seal(session, journal)
    return RecordedRun(journal, experiment, problem)
