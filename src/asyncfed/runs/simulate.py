"""Simulating an experiment: wall-clock, progress and checkpoints. What happens inside a run is decided elsewhere."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from asyncfed.delays import DelayModel
from asyncfed.engine.execution import MergeObserver
from asyncfed.engine.model_shapes import with_model_shapes
from asyncfed.engine.plan import check_churn, check_stopping, trusted_shard
from asyncfed.experiment import Experiment
from asyncfed.problems.client_measurements import check_measurable
from asyncfed.problems.protocol import Problem
from asyncfed.runs.cores import thread_count
from asyncfed.runs.given_problem import choose_problem
from asyncfed.runs.header import new_header
from asyncfed.runs.interruption import interruptible
from asyncfed.runs.large_population import check_large_population
from asyncfed.runs.other_machines import OtherMachines, trained_there
from asyncfed.runs.progress import Watcher, finishing, progress, seal
from asyncfed.runs.result import RecordedRun
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal

if TYPE_CHECKING:
    from asyncfed.data.data_source import PreparedData

PROGRESS_SECONDS = 0.1
CHECKPOINT_SECONDS = 2.0
MOST_WAITING_EVENTS = 60_000

LONG_CHECKPOINT, TIMES_ITS_COST = 0.05, 20.0
"""After a checkpoint that took more than so many seconds of computing, the next waits for so many times its own. It is
as long as the list of clients that were heard from, which in a large population grows all the time."""


def simulate(
    experiment: Experiment,
    *,
    out: Path | str | None = None,
    problem: Problem | None = None,
    prepared: PreparedData | None = None,
    delays: DelayModel | None = None,
    threads: int | None = None,
    watch: Watcher | None = None,
    force: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    observer: MergeObserver | None = None,
    compiled: bool = True,
    cluster: OtherMachines | None = None,
) -> RecordedRun:
    """Run an experiment in virtual time, to its end or until Ctrl-C; see `asyncfed.run`.

    The `observer` is called with every merge just before it is carried out. Without `compiled`, every arrival is
    stepped through in Python.
    """
    own_problem, own_delays = problem is not None, delays is not None
    problem = choose_problem(experiment, problem, prepared)
    check_large_population(experiment, problem.num_clients)
    experiment.run_strategy(problem.num_clients).check(problem.num_clients)
    check_measurable(problem, getattr(experiment.strategy, "work", None))
    check_churn(experiment.churn, problem.num_clients)
    delays = experiment.bind_delays(problem.num_clients, delays)
    header = new_header(experiment, problem, own_problem=own_problem, own_delays=own_delays)
    plan = experiment.plan(thread_count(threads), problem.num_clients)
    check_stopping(problem, plan)
    trusted_shard(problem, plan)
    with_model_shapes(plan.strategy, problem)
    with trained_there(cluster, experiment, problem, described=not own_problem) as trained:
        journal = Journal.create(out, header, replace=force)  # last, when nothing is left that could be refused
        with finishing(journal):
            simulation = Simulation(trained, delays, plan, journal, observer=observer, compiled=compiled)
            drive_simulation(simulation, journal, watch, checkpoint_seconds)
    return RecordedRun(journal, experiment, problem)


def drive_simulation(
    simulation: Simulation, journal: Journal, watch: Watcher | None, checkpoint_seconds: float
) -> None:
    """Advance in pieces of about a tenth of a second; in between report, checkpoint, and check for Ctrl-C."""
    # One arrival may take a minute; soon there are as many as fit into a tenth of a second.
    arrivals, saved_at, pause = 1, time.monotonic(), 0.0
    with closing(simulation), interruptible() as interrupted, collector_paused():
        while not simulation.finished and not interrupted.is_set():
            began = time.monotonic()
            simulation.advance(arrivals)
            now = time.monotonic()
            arrivals = max(1, min(4 * arrivals, int(arrivals * PROGRESS_SECONDS / max(now - began, 1e-6))))
            if watch is not None:
                watch(progress(simulation.state))
            if now - saved_at >= max(checkpoint_seconds, pause):
                computed = time.process_time()
                journal.commit(*simulation.checkpoint())
                gc.collect(0)
                saved_at, cost = time.monotonic(), time.process_time() - computed
                pause = TIMES_ITS_COST * cost if cost > LONG_CHECKPOINT else 0.0
            elif journal.waiting > MOST_WAITING_EVENTS:  # resuming begins at the checkpoint, and does these again
                journal.commit(None, None)
        seal(simulation, journal)


@contextmanager
def collector_paused() -> Iterator[None]:
    """The loop makes many small values and no cycles; the collector runs at checkpoints, not all the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
