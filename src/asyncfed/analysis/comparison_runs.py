"""The runs of a comparison: done in worker processes, the data of a seed prepared once in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from asyncfed.analysis.comparison_target import is_met
from asyncfed.analysis.evaluation_axis import axis_positions
from asyncfed.analysis.protocols import Axis
from asyncfed.core.errors import AsyncFedError, ConfigError
from asyncfed.core.record import replace
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.cores import usable_cores
from asyncfed.runs.other_machines import OtherMachines
from asyncfed.runs.process_pool import check_portable, open_pool
from asyncfed.runs.result import RecordedRun
from asyncfed.runs.simulate import simulate
from asyncfed.strategies.protocol import Strategy

ADVICE = (
    'Call compare under `if __name__ == "__main__":`, define strategies of your own in a module that can be imported, '
    "and check that memory suffices; workers=1 needs none of this."
)

Watcher = Callable[[int, int, str, int], None]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Outcome:
    """The results of one run of a comparison.

    Args:
        label: the strategy's name in the comparison.
        seed: the seed of the run.
        verdict: how it ended: "finished" or "diverged".
        reason: why it ended, in words.
        evaluations: what was measured, an array for each column, as in `Run.evaluations`.
        rounds: the ledger of the rounds, an array for each column, as in `Run.rounds`.
        participation: each client's number of merged updates, shape (C,).
        sha256: digests of the journal and of the final model, in hex.
        kept: the evaluation of the model that the run is left with, as in `Run.kept`.
    """

    label: str
    seed: int
    verdict: str
    reason: str
    evaluations: Mapping[str, np.ndarray]
    rounds: Mapping[str, np.ndarray]
    participation: np.ndarray
    sha256: Mapping[str, str]
    kept: int = -1

    @property
    def objective(self) -> np.ndarray:
        """The objective at each evaluation."""
        return self.evaluations["objective"]

    def values(self, metric: str) -> np.ndarray:
        """The metric at each evaluation; NaN where it is not known."""
        return np.asarray(self.evaluations[metric], np.float64)

    def final(self, metric: str) -> float:
        """The metric of the model that the run is left with."""
        return float(self.values(metric)[self.kept])

    def positions(self, axis: Axis) -> np.ndarray:
        """Where each evaluation lies: its round, virtual seconds, bytes (down and up), or joules since the start."""
        return axis_positions(axis, self.evaluations, self.rounds)

    def cost_of(self, target: float, axis: Axis, metric: str = "objective") -> float:
        """The place of the first evaluation as good as `target`; NaN if there is none, or if the run diverged."""
        reached = np.flatnonzero(is_met(metric, self.values(metric), target))
        if self.verdict == "diverged" or not len(reached):
            return float("nan")
        return float(self.positions(axis)[reached[0]])


class Task(NamedTuple):
    """One run of a comparison."""

    label: str
    experiment: Experiment

    def __str__(self) -> str:
        return f'strategy "{self.label}", seed {self.experiment.seed}'


def plan_tasks(experiment: Experiment, strategies: Mapping[str, Strategy], seeds: Sequence[int]) -> list[Task]:
    """Every strategy with every seed, the runs of a seed one after the other; refuses what cannot be run."""
    if not strategies:
        raise ConfigError("there are no strategies to compare; give at least one, as {label: strategy}.")
    if not seeds:
        raise ConfigError("there are no seeds; give at least one, and at least two for confidence intervals.")
    if len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds {list(seeds)} hold a number twice; the same seed is the same run, so name each once.")
    num_clients = problem_memory.of(experiment).num_clients
    for label, strategy in strategies.items():
        try:
            strategy.check(num_clients)
        except ConfigError as error:
            raise ConfigError(f'strategy "{label}": {error}') from error
    return [Task(label, replace(experiment, strategy=s, seed=n)) for n in seeds for label, s in strategies.items()]


def do_tasks(
    tasks: Sequence[Task],
    workers: int | None,
    watch: Watcher | None,
    run: Callable[[Task], T],
    cluster: OtherMachines | None = None,
) -> Mapping[tuple[str, int], T]:
    """Do the runs; what `run` answers with, by strategy and seed. It is a function at the top of a module."""
    count = min(usable_cores() if workers is None else workers, len(tasks))
    if count > 1 or cluster is not None:
        for task in tasks:
            check_portable(task, str(task), "Define the strategy at the top of a module, or compare with workers=1.")
    done: dict[tuple[str, int], T] = {}
    with open_pool(count, ADVICE) if cluster is None else cluster.open_pool(advice=ADVICE) as pool:
        jobs = {pool.submit(run, task): task for task in tasks}
        for job in pool.finished(jobs):
            task = jobs[job]
            try:
                done[task.label, task.experiment.seed] = job.result()
            except Exception as error:
                raise _named(error, task) from error
            if watch is not None:
                watch(len(done), len(tasks), task.label, task.experiment.seed)
    return done


class ProblemMemory:
    """The last problem that was made, for runs that differ in the strategy alone: data are prepared once a seed.

    Each worker process has its own, and does the runs of one seed after those of another.
    """

    def __init__(self) -> None:
        self._last: tuple[tuple[object, ...], Problem] | None = None

    def keep(self, experiment: Experiment, problem: Problem) -> None:
        """Remember what the experiment describes."""
        self._last = _what_is_learnt(experiment), problem

    def forget(self) -> None:
        """Keep no data in memory that nobody needs."""
        self._last = None

    def of(self, experiment: Experiment) -> Problem:
        """The experiment's problem, which is made only if the last one was another."""
        if self._last is None or self._last[0] != _what_is_learnt(experiment):
            self.forget()  # so that there are never two of them
            self.keep(experiment, experiment.problem())
        assert self._last is not None
        return self._last[1]


def _what_is_learnt(e: Experiment) -> tuple[object, ...]:
    return e.data, e.split, e.holdout, e.num_clients, e.seed, e.dtype, e.model, e.attack, e.init


problem_memory = ProblemMemory()


def run_task(task: Task) -> Outcome:
    """Do one run."""
    return outcome_of(task, simulate_task(task))


def simulate_task(task: Task) -> RecordedRun:
    """The run itself, on the data of its seed."""
    finished = simulate(task.experiment, problem=problem_memory.of(task.experiment), threads=1)
    if not finished.finished:
        raise KeyboardInterrupt
    return finished


def outcome_of(task: Task, finished: RecordedRun) -> Outcome:
    """What a comparison keeps of a run."""
    return Outcome(
        label=task.label,
        seed=task.experiment.seed,
        verdict=finished.verdict,
        reason=finished.reason,
        evaluations=finished.evaluations,
        rounds=finished.rounds,
        participation=finished.participation_of_known(),
        sha256=finished.sha256,
        kept=finished.kept,
    )


def _named(error: Exception, task: Task) -> Exception:
    """The same error, saying which run it broke."""
    if isinstance(error, AsyncFedError):
        return type(error)(f"{task}: {error}")
    error.add_note(f"It broke the comparison at {task}.")
    return error
