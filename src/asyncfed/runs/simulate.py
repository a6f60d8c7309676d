"""Running experiments: wall-clock, progress, checkpoints, Ctrl-C. What happens inside a run is decided elsewhere."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError, JournalError, ProtocolError
from asyncfed.core.record import replace, to_plain
from asyncfed.delays import DelayModel
from asyncfed.experiment import Experiment, differences, stored
from asyncfed.problems.protocol import Problem
from asyncfed.runs.result import Run, load, params_sha256
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.plan import Plan, check_churn, check_stopping
from asyncfed.engine.progress import RunInProgress, RunState
from asyncfed.engine.replay import replay
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal
from asyncfed.version import __version__

WATCH_SECONDS = 0.1
CHECKPOINT_SECONDS = 2.0
MOST_WAITING_EVENTS = 60_000


class Progress(NamedTuple):
    """How far a run is: what a progress bar needs."""

    rounds: int
    updates: int
    elapsed: float
    objective: float


Watcher = Callable[[Progress], None]


def run(
    experiment: Experiment,
    *,
    out: Path | str | None = None,
    problem: Problem | None = None,
    delays: DelayModel | None = None,
    threads: int | None = None,
    watch: Watcher | None = None,
    force: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Run:
    """Run an experiment to its end, or until Ctrl-C.

    `out` is the run's file (in memory if None). `problem` and `delays` replace what the experiment describes, for data
    and clocks of your own. `threads` (default: all cores) changes the speed and nothing else.
    """
    problem = experiment.problem() if problem is None else problem
    experiment.strategy.check(problem.num_clients)
    check_churn(experiment.churn, problem.num_clients)
    own_delays = delays is not None
    delays = experiment.delays.bind(problem.num_clients, experiment.seed) if delays is None else delays
    header = {
        "asyncfed": __version__,
        "experiment": written(experiment),
        "problem": problem.fingerprint(),
        "num_clients": problem.num_clients,
        "own_delays": own_delays,
        "verdict": "interrupted",
        "reason": "it was stopped before its end",
    }
    plan = experiment.plan(thread_count(threads))
    check_stopping(problem, plan)
    journal = Journal.create(out, header, replace=force)  # last, when nothing is left that could be refused
    simulation = Simulation(problem, delays, plan, journal)
    _drive(simulation, journal, watch, checkpoint_seconds)
    return Run(journal, problem)


def resume(
    path: Path | str,
    *,
    experiment: Experiment | None = None,
    problem: Problem | None = None,
    delays: DelayModel | None = None,
    threads: int | None = None,
    watch: Watcher | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Run:
    """Continue an interrupted run from its last checkpoint, to the bytes it would have reached uninterrupted.

    Pass `experiment`, `problem` or `delays` again if the run was given any that its file cannot hold; they must be the
    same, and are compared with what the file says.
    """
    journal = Journal.open(path, write=True)
    header = journal.header()
    if "live" in header:
        raise JournalError(f"{path} is a live run, whose clients are real. Continue it with `asyncfed resume {path}`.")
    experiment = same_experiment(header, experiment, journal.path)
    problem = experiment.problem() if problem is None else problem
    check_same_problem(header, problem, path)
    checkpoint = journal.checkpoint()
    if header["verdict"] != "interrupted":
        journal.rehash()
        return Run(journal, problem)
    if delays is None:
        if header["own_delays"]:
            raise JournalError(
                f"{path} was run with delays of your own, which its file cannot hold. Pass the same again: "
                "af.resume(path, delays=...). Nothing was changed."
            )
        delays = experiment.delays.bind(problem.num_clients, experiment.seed)
    journal.rewind(0 if checkpoint is None else checkpoint[0]["seq"])
    simulation = Simulation(problem, delays, experiment.plan(thread_count(threads)), journal, checkpoint)
    _drive(simulation, journal, watch, checkpoint_seconds)
    return Run(journal, problem)


class Verification(NamedTuple):
    """What `verify` found: whether all is well, and a sentence for each check."""

    ok: bool
    lines: tuple[str, ...]


def verify(
    path: Path | str,
    *,
    experiment: Experiment | None = None,
    problem: Problem | None = None,
    threads: int | None = None,
    watch: Callable[[int], None] | None = None,
) -> Verification:
    """Check a finished run's file against its own seal, then replay its journal and compare all that comes of it.

    The replay hands the recorded arrivals to a new server and does every training, merge and measurement again. Client
    drift is not measured again. `watch` is told how many reports are done.
    """
    recorded = load(path)
    if not recorded.finished:
        raise JournalError(f"{path} is not finished, so there is nothing to compare. First `asyncfed resume {path}`.")
    experiment = same_experiment(recorded.header, experiment, recorded.path)
    problem = experiment.problem() if problem is None else problem
    check_same_problem(recorded.header, problem, path)
    seal = recorded.header["sha256"]
    intact = recorded.sha256 == seal
    lines = ["the file agrees with its seal" if intact else "THE FILE WAS CHANGED after the run: it breaks its seal"]
    again = Journal.create(None, {})
    try:
        plan = replace(_plan(recorded.header, experiment, threads), evaluation=_without_drift(experiment))
        for reports in replay(problem, plan, recorded.journal.event_rows(), again):
            if watch is not None:
                watch(reports)
    except (JournalError, ProtocolError) as error:
        return Verification(False, (*lines, f"THE JOURNAL CANNOT BE REPLAYED: {error}"))
    parts = _compared(recorded, Run(again))
    lines += [f"{part}: {'the same' if same else 'NOT THE SAME'} when replayed" for part, same in parts.items()]
    return Verification(intact and all(parts.values()), tuple(lines))


def _plan(header: dict[str, Any], experiment: Experiment, threads: int | None) -> Plan:
    """The run's plan; of a live run the file also says who was not there at the start."""
    absent = header.get("live", {}).get("absent", ())
    return replace(experiment.plan(thread_count(threads)), absent=tuple(absent))


def _without_drift(experiment: Experiment) -> Evaluation:
    return replace(experiment.evaluation, drift=False)


def _compared(recorded: Run, replayed: Run) -> dict[str, bool]:
    """Which parts of a run agree. Evaluations may have been made at other moments too; those of both are compared."""
    parts = {part: digest == recorded.sha256[part] for part, digest in replayed.sha256.items()}
    before, after = recorded.rounds, replayed.rounds
    parts["rounds"] = all(np.array_equal(before[name], after[name]) for name in after)
    before, after = recorded.evaluations, replayed.evaluations
    _, ours, theirs = np.intersect1d(before["updates"], after["updates"], return_indices=True)
    parts["evaluations"] = len(ours) > 0 and all(
        np.array_equal(before[name][ours], after[name][theirs], equal_nan=True) for name in after if name in before
    )
    return parts


def check_same_problem(header: dict[str, Any], problem: Problem, path: Path | str) -> None:
    if problem.fingerprint() != header["problem"]:
        raise JournalError(
            f"{path} was run on other data or another loss (its problem is {header['problem'][:12]}, this one "
            f"{problem.fingerprint()[:12]}). Give the same problem again; nothing was changed."
        )


def same_experiment(header: dict[str, Any], given: Experiment | None, path: Path | None) -> Experiment:
    if given is None:
        return stored(header["experiment"], path)
    changes = differences(header["experiment"], given)
    if changes:
        raise JournalError(
            f"{path} was started with another experiment, and mixing two would be neither. Changed: "
            f"{'; '.join(changes)}. Resume it as it was, or start a new run with another --out. Nothing was changed."
        )
    return given


def written(experiment: Experiment) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = to_plain(experiment)
    except TypeError as error:
        raise ConfigError(
            f"The experiment has a part that cannot be written down ({error}). Hand functions and data of your own to "
            "af.run as `delays=` and `problem=` instead."
        ) from error
    return plain


def usable_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def become_worker() -> None:
    """What a worker process does first: leave Ctrl-C to its parent, and end when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """A parent that was killed cannot ask anybody to stop, and a pool's workers would wait for it for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def thread_count(threads: int | None) -> int:
    if threads is not None and threads < 1:
        raise ConfigError(f"threads is {threads}; it must be at least 1.")
    return threads or usable_cores()


def _drive(simulation: Simulation, journal: Journal, watch: Watcher | None, checkpoint_seconds: float) -> None:
    """Advance in pieces of about a tenth of a second; in between report, checkpoint, and look for Ctrl-C."""
    arrivals, saved_at = 64, time.monotonic()
    with interruptible() as interrupted, _collector_at_rest():
        while not simulation.finished and not interrupted.is_set():
            began = time.monotonic()
            simulation.advance(arrivals)
            now = time.monotonic()
            arrivals = max(1, min(4 * arrivals, int(arrivals * WATCH_SECONDS / max(now - began, 1e-6))))
            if watch is not None:
                watch(progress(simulation.state))
            if now - saved_at >= checkpoint_seconds or len(journal.events) > MOST_WAITING_EVENTS:
                journal.commit(*simulation.checkpoint())
                gc.collect(0)
                saved_at = time.monotonic()
    seal(simulation, journal)


def seal(run: RunInProgress, journal: Journal) -> None:
    """Write the last checkpoint and, if the run is over, how it ended and the digests of what it did."""
    journal.commit(*run.checkpoint())
    if run.finished:
        verdict, reason = run.state.verdict
        digests = {"journal": journal.sha256(), "params": params_sha256(run.state.params)}
        journal.commit(None, None, verdict=verdict, reason=reason, sha256=digests)


def progress(state: RunState) -> Progress:
    """How far the run is at this moment."""
    objective = state.last_metrics.get("objective", float("nan"))
    return Progress(state.rounds, state.updates, state.elapsed, objective)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """The loop makes many small values and no cycles; the collector looks at checkpoints, not all the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """The first Ctrl-C (or SIGTERM) sets the event, so that the run can stop at a clean moment; the second kills."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before: dict[signal.Signals, Any] = {}

    def ask_to_stop(number: Any, frame: Any) -> None:
        interrupted.set()
        signal.signal(number, before[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, ask_to_stop)
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
