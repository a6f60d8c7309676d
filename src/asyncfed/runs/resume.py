"""Continuing an interrupted run, simulated or live."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.delays import DelayModel
from asyncfed.engine.plan import Plan
from asyncfed.experiment import Experiment
from asyncfed.live.engine_protocol import Engine
from asyncfed.problems.protocol import Problem
from asyncfed.runs.cores import thread_count
from asyncfed.runs.given_problem import stored_problem
from asyncfed.runs.header import check_same_problem, same_experiment
from asyncfed.runs.live import LiveProgress, resume_live
from asyncfed.runs.other_machines import OtherMachines, trained_there
from asyncfed.runs.progress import Progress, Watcher, finishing, progress
from asyncfed.runs.result import RecordedRun
from asyncfed.runs.run_file import open_to_resume
from asyncfed.runs.simulate import CHECKPOINT_SECONDS, drive_simulation
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal


def resume(
    path: Path | str,
    *,
    experiment: Experiment | None = None,
    problem: Problem | None = None,
    delays: DelayModel | None = None,
    engine: Engine | None = None,
    engines: Mapping[str, type[Engine]] | None = None,
    threads: int | None = None,
    watch: Callable[[Progress | LiveProgress], None] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    cluster: OtherMachines | None = None,
) -> RecordedRun:
    """Continue an interrupted run, whether it is simulated or live; see `asyncfed.resume`, and `resume_live`."""
    journal = Journal.open(path)
    is_live = "live" in journal.header()
    journal.close()
    if is_live:
        if delays is not None:
            raise ConfigError(f"{path} is a live run, whose delays are real: it takes no delays=. Nothing was changed.")
        if cluster is not None:
            raise ConfigError(f"{path} is a live run, whose clients train: it takes no cluster=. Nothing was changed.")
        return resume_live(
            path,
            engine=engine,
            engines=engines,
            experiment=experiment,
            problem=problem,
            threads=threads,
            watch=watch,
        )
    if engine is not None:
        raise ConfigError(f"{path} is a simulated run, which has no clients to reach: it takes no engine=.")
    return resume_simulation(
        path,
        experiment=experiment,
        problem=problem,
        delays=delays,
        threads=threads,
        watch=watch,
        checkpoint_seconds=checkpoint_seconds,
        cluster=cluster,
    )


def resume_simulation(
    path: Path | str,
    *,
    experiment: Experiment | None = None,
    problem: Problem | None = None,
    delays: DelayModel | None = None,
    threads: int | None = None,
    watch: Watcher | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    cluster: OtherMachines | None = None,
) -> RecordedRun:
    """Continue a simulation from its last checkpoint, to the bytes it would have reached uninterrupted."""
    journal = open_to_resume(path)
    with finishing(journal):
        header = journal.header()
        experiment = same_experiment(header, experiment, journal.path)
        described = problem is None
        problem = stored_problem(experiment, problem)
        check_same_problem(header, problem, path)
        if header["verdict"] != "interrupted":
            journal.rehash()
            return RecordedRun(journal, experiment, problem)
        if delays is None and header["own_delays"]:
            raise JournalError(
                f"{path} was run with delays of your own, which its file cannot hold. Pass the same again: "
                "af.resume(path, delays=...). Nothing was changed."
            )
        delays = experiment.bind_delays(problem.num_clients, delays)
        plan = experiment.plan(thread_count(threads), problem.num_clients)
        with trained_there(cluster, experiment, problem, described) as trained:
            simulation = _restore(journal, trained, delays, plan)
            if watch is not None:
                watch(progress(simulation.state))  # what was measured last is known before anything is computed
            drive_simulation(simulation, journal, watch, checkpoint_seconds)
    return RecordedRun(journal, experiment, problem)


def _restore(journal: Journal, problem: Problem, delays: DelayModel, plan: Plan) -> Simulation:
    """The simulation as it was at its last checkpoint."""
    checkpoint = journal.checkpoint()
    seq = 0 if checkpoint is None else checkpoint[0]["seq"]
    if not isinstance(seq, int) or seq < 0:
        raise JournalError(
            f"{journal.path} is damaged: its checkpoint is of event {seq!r}. Restore the file from a copy."
        )
    journal.rewind(seq)
    return Simulation(problem, delays, plan, journal, checkpoint)
