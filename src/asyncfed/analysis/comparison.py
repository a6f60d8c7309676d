"""Comparing strategies fairly: the same seeds for all, so the same data, split and devices, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from asyncfed.analysis.comparison_runs import Outcome, Watcher, do_tasks, plan_tasks, problem_memory, run_task
from asyncfed.analysis.comparison_target import check_target, choose_metric, is_met, progress_target
from asyncfed.analysis.protocols import Axis, Ratio, check_label
from asyncfed.analysis.statistics import geometric_interval
from asyncfed.core.errors import ConfigError
from asyncfed.experiment import Experiment
from asyncfed.runs.other_machines import OtherMachines
from asyncfed.strategies.protocol import Strategy

if TYPE_CHECKING:
    from asyncfed.data.data_source import PreparedData


@dataclass(frozen=True, eq=False)
class Comparison:
    """Strategies compared on the same seeds, and what each needed to reach a target.

    Args:
        name: the experiment's name.
        labels: the strategies' names, in the order given.
        seeds: the seeds, in the order given; runs with the same seed are pairs.
        runs: the outcomes: `runs[label][seed]`.
        asked_target: the value of the metric to reach, if one was given; see `targets`.
        metric: what is compared: a column of `Run.evaluations`. Accuracies are to rise, everything else is to fall.

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
    metric: str = "objective"

    @cached_property
    def targets(self) -> Mapping[int, float]:
        """The value of the metric to reach with each seed: as asked, or else 95 % of the progress of the best run.

        `start - 0.95 (start - best)`, where `best` is the best value that any run with this seed reached that did not
        diverge. NaN if none was ever better than at its start.
        """
        if self.asked_target is not None:
            return dict.fromkeys(self.seeds, self.asked_target)
        return {
            seed: progress_target(
                self.metric, [run.values(self.metric) for run in self._of_seed(seed) if run.verdict != "diverged"]
            )
            for seed in self.seeds
        }

    @property
    def target(self) -> float:
        """The mean of `targets`; NaN if there is none."""
        known = [value for value in self.targets.values() if np.isfinite(value)]
        return float(np.mean(known)) if known else float("nan")

    @property
    def measured(self) -> tuple[str, ...]:
        """What was measured in all runs, by name."""
        return tuple(
            name
            for name in self.runs[self.labels[0]][self.seeds[0]].evaluations
            if all(name in run.evaluations for of_seed in self.runs.values() for run in of_seed.values())
        )

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences about runs that could not be compared, and why."""
        notes = []
        no_target = [seed for seed in self.seeds if not np.isfinite(self.targets[seed])]
        if no_target:
            notes.append(f"no run improved on its start with {_seeds(no_target)}, so there was no target")
        early = [
            seed
            for seed in self.seeds
            if any(_starts_at(run, self.metric, self.targets[seed]) for run in self._of_seed(seed))
        ]
        if early:
            notes.append(f"the target is met before training with {_seeds(early)}; ask for a harder one")
        for label in self.labels:
            gone = [seed for seed in self.seeds if self.runs[label][seed].verdict == "diverged"]
            if gone:
                notes.append(f"{label} diverged with {_seeds(gone)}; try a smaller learning rate")
            cost = self.time_to_target(label, "round")
            missed = [
                seed
                for seed, value in zip(self.seeds, cost, strict=True)
                if not np.isfinite(value) and seed not in (*gone, *no_target)
            ]
            if missed:
                notes.append(f"{label} did not reach the target with {_seeds(missed)}")
        return tuple(notes)

    def time_to_target(self, label: str, axis: Axis) -> np.ndarray:
        """What it took to reach the target, seed by seed; NaN where it was never reached."""
        check_label(label, self.labels)
        return np.array([self.runs[label][seed].cost_of(self.targets[seed], axis, self.metric) for seed in self.seeds])

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

    def _of_seed(self, seed: int) -> Iterator[Outcome]:
        for label in self.labels:
            yield self.runs[label][seed]


def _starts_at(run: Outcome, metric: str, target: float) -> bool:
    return bool(is_met(metric, run.values(metric)[:1], target).any())


def _seeds(numbers: Sequence[int]) -> str:
    return f"seed{'s'[: len(numbers) > 1]} {', '.join(map(str, numbers))}"


def compare(
    experiment: Experiment,
    strategies: Mapping[str, Strategy],
    seeds: Sequence[int],
    *,
    metric: str | None = None,
    target: float | None = None,
    prepared: PreparedData | None = None,
    workers: int | None = None,
    watch: Watcher | None = None,
    cluster: OtherMachines | None = None,
) -> Comparison:
    """Run every strategy with every seed. Runs with the same seed share data, split and devices: they are pairs.

    A run that diverges is a result; an error stops the comparison and names the strategy and the seed. In a script,
    call it under `if __name__ == "__main__":`, for the workers import that script.

    Args:
        experiment: everything but the strategy and the seed.
        strategies: what is compared, by a name of your choice; at least one. Your own strategies must be defined in a
            module if there is more than one worker.
        seeds: whole numbers ≥ 0, each once; at least two for confidence intervals.
        metric: what is compared, such as `validation_loss`, `test_accuracy` or `objective` (default: `objective`).
            Accuracies are to rise, everything else is to fall.
        target: the value of the metric to reach, above 0; an accuracy is at most 1 (default: 95 % of the way from the
            start to the best value of any strategy, seed by seed; see `Comparison.targets`).
        prepared: the experiment's data, for its own seed, if `experiment.prepare_data()` has prepared them already.
        workers: processes, at least 1 (default: one per usable core). They change the speed and nothing else; 1 works
            in this process.
        watch: called after each run as `watch(done, total, label, seed)`.
        cluster: other machines that do the runs, an open `asyncfed.Cluster`, in place of `workers`.

    Returns:
        The outcomes, and what each strategy needed to reach the target.

    >>> from asyncfed import presets
    >>> base = presets.regression(rounds=2)
    >>> both = {name: presets.regression(strategy=name).strategy for name in ("afl", "sync")}
    >>> compare(base, both, seeds=[0, 1], workers=1).labels
    ('afl', 'sync')
    """
    experiment.require_measurements("comparing strategies")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers is {workers}; it must be at least 1.")
    if prepared is not None:
        problem_memory.keep(experiment, experiment.problem(prepared))
    try:
        tasks = plan_tasks(experiment, strategies, seeds)
        chosen = choose_metric(_measured_names(experiment, metric), metric)
        if target is not None:
            check_target(chosen, target)
        done = do_tasks(tasks, workers, watch, run_task, cluster)
    finally:
        problem_memory.forget()
    runs = {label: {seed: done[label, seed] for seed in seeds} for label in strategies}
    return Comparison(experiment.name, tuple(strategies), tuple(seeds), runs, target, chosen)


def _measured_names(experiment: Experiment, metric: str | None) -> tuple[str, ...]:
    """What is measured at each evaluation, by name; the distance to the optimum only if the metric is about it."""
    problem = problem_memory.of(experiment)
    names = tuple(problem.evaluate(problem.init(experiment.seed, how=experiment.init)))
    with_distance = metric == "distance" and experiment.evaluation.distance and problem.optimum() is not None
    return (*names, "distance") if with_distance else names
