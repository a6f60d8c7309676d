"""Comparing strategies fairly: the same seeds for all, so the same data, split and devices, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from asyncfed.analysis.evaluation_axis import axis_positions
from asyncfed.analysis.protocols import Axis, Ratio, check_label
from asyncfed.analysis.statistics import geometric_interval
from asyncfed.core.errors import AsyncFedError, ConfigError
from asyncfed.core.record import replace
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.cores import usable_cores
from asyncfed.runs.process_pool import check_portable, open_pool
from asyncfed.runs.simulate import simulate
from asyncfed.strategies.protocol import Strategy

if TYPE_CHECKING:
    from asyncfed.data.data_source import PreparedData

SLACK = 1.1
"""What the default target allows on the worst run's best objective, so that noise does not decide who gets there."""

ADVICE = (
    'Call compare under `if __name__ == "__main__":`, define strategies of your own in a module that can be imported, '
    "and check that memory suffices; workers=1 needs none of this."
)

Watcher = Callable[[int, int, str, int], None]


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
    """

    label: str
    seed: int
    verdict: str
    reason: str
    evaluations: Mapping[str, np.ndarray]
    rounds: Mapping[str, np.ndarray]
    participation: np.ndarray
    sha256: Mapping[str, str]

    @property
    def objective(self) -> np.ndarray:
        """The objective at each evaluation."""
        return self.evaluations["objective"]

    def positions(self, axis: Axis) -> np.ndarray:
        """Where each evaluation lies: its round, virtual seconds, bytes (down and up), or joules since the start."""
        return axis_positions(axis, self.evaluations, self.rounds)

    def cost_of(self, target: float, axis: Axis) -> float:
        """The place of the first evaluation at or below `target`; NaN if there is none, or if the run diverged."""
        reached = np.flatnonzero(self.objective <= target)
        if self.verdict == "diverged" or not len(reached):
            return float("nan")
        return float(self.positions(axis)[reached[0]])


@dataclass(frozen=True, eq=False)
class Comparison:
    """Strategies compared on the same seeds, and what each needed to reach a target.

    Args:
        name: the experiment's name.
        labels: the strategies' names, in the order given.
        seeds: the seeds, in the order given; runs with the same seed are pairs.
        runs: the outcomes: `runs[label][seed]`.
        asked_target: the objective to reach, if one was given; see `target`.

    >>> from asyncfed import presets
    >>> base = presets.regression(rounds=30)
    >>> both = {name: presets.regression(strategy=name).strategy for name in ("afl", "sync")}
    >>> comparison = compare(base, both, seeds=[0, 1], workers=1)
    >>> comparison.ratio("sync", "afl", "round").mean < 1  # synchronous FL needs fewer rounds
    True
    """

    name: str
    labels: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: Mapping[str, Mapping[int, Outcome]]
    asked_target: float | None = None

    @cached_property
    def target(self) -> float:
        """The objective to reach: as asked, or else `SLACK * max over runs of its best objective`.

        The default is a level that every run that did not diverge has reached, so no strategy is judged by runs it
        never completed. NaN if all runs diverged.
        """
        if self.asked_target is not None:
            return self.asked_target
        best = [float(np.nanmin(o.objective)) for o in self._outcomes() if o.verdict != "diverged"]
        return SLACK * max(best) if best else float("nan")

    def time_to_target(self, label: str, axis: Axis) -> np.ndarray:
        """What it took to reach the target, seed by seed; NaN where it was never reached."""
        check_label(label, self.labels)
        return np.array([self.runs[label][seed].cost_of(self.target, axis) for seed in self.seeds])

    def paired_ratios(self, label: str, baseline: str, axis: Axis) -> np.ndarray:
        """The cost of `label` over that of `baseline`, seed by seed; NaN where either never reached the target.

        Where either reached it at no cost at all (before training, or on a clock that stands still) it is NaN too.
        """
        cost, other = self.time_to_target(label, axis), self.time_to_target(baseline, axis)
        comparable = (cost > 0) & (other > 0)
        ratios = np.full(len(self.seeds), np.nan)
        ratios[comparable] = cost[comparable] / other[comparable]
        return ratios

    def ratio(self, label: str, baseline: str, axis: Axis) -> Ratio:
        """The geometric mean of the paired ratios with its 95 % confidence interval (t, on their logarithms)."""
        ratios = self.paired_ratios(label, baseline, axis)
        found = geometric_interval(ratios)
        return Ratio(found.mean, found.low, found.high, found.n, len(ratios) - found.n)

    def _outcomes(self) -> Iterator[Outcome]:
        for of_seed in self.runs.values():
            yield from of_seed.values()


def compare(
    experiment: Experiment,
    strategies: Mapping[str, Strategy],
    seeds: Sequence[int],
    *,
    prepared: PreparedData | None = None,
    workers: int | None = None,
    target: float | None = None,
    watch: Watcher | None = None,
) -> Comparison:
    """Run every strategy with every seed. Runs with the same seed share data, split and devices: they are pairs.

    A run that diverges is a result; an error stops the comparison and names the strategy and the seed. In a script,
    call it under `if __name__ == "__main__":`, for the workers import that script.

    Args:
        experiment: everything but the strategy and the seed.
        strategies: what is compared, by a name of your choice; at least one. Your own strategies must be defined in a
            module if there is more than one worker.
        seeds: whole numbers ≥ 0, each once; at least two for confidence intervals.
        prepared: the experiment's data, for its own seed, if `experiment.prepare_data()` has prepared them already.
        workers: processes, at least 1 (default: one per usable core). They change the speed and nothing else; 1 works
            in this process.
        target: the objective to reach, above 0 (default: a level that every run reached; see `Comparison.target`).
        watch: called after each run as `watch(done, total, label, seed)`.

    Returns:
        The outcomes, and what each strategy needed to reach the target.

    >>> from asyncfed import presets
    >>> base = presets.regression(rounds=2)
    >>> both = {name: presets.regression(strategy=name).strategy for name in ("afl", "sync")}
    >>> compare(base, both, seeds=[0, 1], workers=1).labels
    ('afl', 'sync')
    """
    if target is not None and not target > 0:
        raise ConfigError(f"target is {target}; the objective to reach must be positive.")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers is {workers}; it must be at least 1.")
    if prepared is not None:
        _problems.keep(experiment, experiment.problem(prepared))
    try:
        done = _all_outcomes(_tasks(experiment, strategies, seeds), workers, watch)
    finally:
        _problems.forget()
    runs = {label: {seed: done[label, seed] for seed in seeds} for label in strategies}
    return Comparison(experiment.name, tuple(strategies), tuple(seeds), runs, target)


# ---- the runs to be done ---------------------------------------------------------------------------------------


def _all_outcomes(
    tasks: Sequence[Task], workers: int | None, watch: Watcher | None
) -> Mapping[tuple[str, int], Outcome]:
    """Do the runs, by strategy and seed."""
    count = min(usable_cores() if workers is None else workers, len(tasks))
    if count > 1:
        for task in tasks:
            check_portable(task, str(task), "Define the strategy at the top of a module, or compare with workers=1.")
    done: dict[tuple[str, int], Outcome] = {}
    with open_pool(count, ADVICE) as pool:
        jobs = {pool.submit(_outcome, task): task for task in tasks}
        for job in pool.finished(jobs):
            task = jobs[job]
            try:
                done[task.label, task.experiment.seed] = job.result()
            except Exception as error:
                raise _named(error, task) from error
            if watch is not None:
                watch(len(done), len(tasks), task.label, task.experiment.seed)
    return done


class Task(NamedTuple):
    """One run of a comparison."""

    label: str
    experiment: Experiment

    def __str__(self) -> str:
        return f'strategy "{self.label}", seed {self.experiment.seed}'


def _tasks(experiment: Experiment, strategies: Mapping[str, Strategy], seeds: Sequence[int]) -> list[Task]:
    if not strategies:
        raise ConfigError("there are no strategies to compare; give at least one, as {label: strategy}.")
    if not seeds:
        raise ConfigError("there are no seeds; give at least one, and at least two for confidence intervals.")
    if len(set(seeds)) != len(seeds):
        raise ConfigError(f"seeds {list(seeds)} hold a number twice; the same seed is the same run, so name each once.")
    num_clients = _problems.of(experiment).num_clients
    for label, strategy in strategies.items():
        try:
            strategy.check(num_clients)
        except ConfigError as error:
            raise ConfigError(f'strategy "{label}": {error}') from error
    return [Task(label, replace(experiment, strategy=s, seed=n)) for n in seeds for label, s in strategies.items()]


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
    return e.data, e.split, e.holdout, e.num_clients, e.seed, e.dtype, e.model


_problems = ProblemMemory()


def _outcome(task: Task) -> Outcome:
    finished = simulate(task.experiment, problem=_problems.of(task.experiment), threads=1)
    if not finished.finished:
        raise KeyboardInterrupt
    return Outcome(
        label=task.label,
        seed=task.experiment.seed,
        verdict=finished.verdict,
        reason=finished.reason,
        evaluations=finished.evaluations,
        rounds=finished.rounds,
        participation=finished.participation(),
        sha256=finished.sha256,
    )


def _named(error: Exception, task: Task) -> Exception:
    """The same error, saying which run it broke."""
    if isinstance(error, AsyncFedError):
        return type(error)(f"{task}: {error}")
    error.add_note(f"It broke the comparison at {task}.")
    return error
