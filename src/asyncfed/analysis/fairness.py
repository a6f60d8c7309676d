"""What each way of choosing clients buys, and what it costs: the same experiment for the same virtual time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from asyncfed.analysis.client_table import worst_tenth
from asyncfed.analysis.comparison import Comparison
from asyncfed.analysis.comparison_runs import (
    Outcome,
    Task,
    Watcher,
    do_tasks,
    outcome_of,
    plan_tasks,
    problem_memory,
    simulate_task,
)
from asyncfed.analysis.selections import BASELINE, SELECTIONS, with_selection
from asyncfed.analysis.statistics import Interval, geometric_interval, mean_interval
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import as_scoring_problem
from asyncfed.store.schema import DISPATCH

if TYPE_CHECKING:
    from asyncfed.data.data_source import PreparedData


class Measure(NamedTuple):
    """A number about a run: what it is, whether less of it is better, and how two runs are compared by it."""

    words: str
    lower_is_better: bool
    compared_by: Literal["ratio", "difference"]


MEASURES: dict[str, Measure] = {
    "time_to_target": Measure("time to the target", True, "ratio"),
    "mean_loss": Measure("mean loss of clients", True, "ratio"),
    "worst_loss": Measure("loss of the worst tenth", True, "ratio"),
    "loss_spread": Measure("spread of clients' losses", True, "ratio"),
    "least_share": Measure("share of the least heard client", False, "difference"),
    "jain_index": Measure("evenness of merges", False, "difference"),
    "not_merged": Measure("tickets that were never merged", True, "difference"),
}
"""`least_share`: merges of the client that had the fewest, over the mean; `jain_index`: Jain's, of the merges;
`not_merged`: the share of tickets that were lost, dropped, cancelled or still out at the end."""


class FairnessOutcome(NamedTuple):
    """One run, and how each client fares with its model.

    Args:
        run: as in a comparison.
        client_loss: of the model at the end, on each client's own rows; NaN for a client without any.
        part: the rows on which losses were measured.
        dispatched: how many tickets were given out.
    """

    run: Outcome
    client_loss: np.ndarray
    part: str
    dispatched: int


class Effect(NamedTuple):
    """What a selection changes against the baseline in one measure.

    Args:
        measure: its name.
        interval: the ratio to the baseline (geometric mean over paired seeds) or the difference, with its 95 %
            confidence interval.
        verdict: "better" or "worse" where the interval leaves no doubt, else "not told apart".
    """

    measure: str
    interval: Interval
    verdict: Literal["better", "worse", "not told apart"]


@dataclass(frozen=True, eq=False)
class Fairness:
    """Ways of choosing clients, compared on the same seeds after the same virtual time.

    Args:
        comparison: the runs, and what each needed to reach the target.
        outcomes: `outcomes[selection][seed]`.
        seconds: the virtual time that every run had.
    """

    comparison: Comparison
    outcomes: Mapping[str, Mapping[int, FairnessOutcome]]
    seconds: float

    @property
    def selections(self) -> tuple[str, ...]:
        """Their names; the first is the baseline."""
        return self.comparison.labels

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds; runs with the same seed are pairs."""
        return self.comparison.seeds

    @property
    def part(self) -> str:
        """The rows on which the clients' losses were measured."""
        return self.outcomes[BASELINE][self.seeds[0]].part

    @cached_property
    def measured(self) -> Mapping[str, Mapping[str, np.ndarray]]:
        """`measured[selection][measure]`, a value for each seed; NaN where a run diverged or missed the target."""
        return {name: self._measure(name) for name in self.selections}

    def _measure(self, name: str) -> dict[str, np.ndarray]:
        rows = [_numbers_of(self.outcomes[name][seed]) for seed in self.seeds]
        columns = {measure: np.array([row[measure] for row in rows]) for measure in rows[0]}
        return {"time_to_target": self.comparison.time_to_target(name, "elapsed"), **columns}

    def mean(self, name: str, measure: str) -> Interval:
        """The mean over seeds of a measure, with its 95 % confidence interval."""
        return mean_interval(self.measured[name][measure])

    def effect(self, name: str, measure: str) -> Effect:
        """What a selection changes in one measure against the baseline, pair by pair."""
        own, base = self.measured[name][measure], self.measured[BASELINE][measure]
        kind = MEASURES[measure]
        if kind.compared_by == "ratio":
            positive = (own > 0) & (base > 0)
            ratios = np.full(len(own), np.nan)
            ratios[positive] = own[positive] / base[positive]
            found, same = geometric_interval(ratios), 1.0
        else:
            found, same = mean_interval(own - base), 0.0
        if not isfinite(found.low) or found.low <= same <= found.high:
            return Effect(measure, found, "not told apart")
        lower = found.high < same
        return Effect(measure, found, "better" if lower == kind.lower_is_better else "worse")

    def effects(self, name: str) -> list[Effect]:
        """What a selection changes against the baseline."""
        return [self.effect(name, measure) for measure in MEASURES]

    def client_means(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Losses and merges over their mean, sorted in each run and averaged over seeds, the smallest first.

        Clients are not the same in every run: the first value is that of whoever fared best in each.
        """
        outcomes = [o for o in self.outcomes[name].values() if o.run.verdict != "diverged"]
        if not outcomes:
            return np.empty(0), np.empty(0)
        losses = np.mean([np.sort(o.client_loss) for o in outcomes], axis=0)
        merges = np.mean([np.sort(o.run.participation) / max(1e-300, o.run.participation.mean()) for o in outcomes], 0)
        return losses[np.isfinite(losses)], merges

    def columns(self) -> dict[str, list[Any]]:
        """A row for each run: selection, seed, verdict and all measures."""
        table: dict[str, list[Any]] = {name: [] for name in ("selection", "seed", "verdict", *MEASURES)}
        for name in self.selections:
            for place, seed in enumerate(self.seeds):
                table["selection"].append(name)
                table["seed"].append(seed)
                table["verdict"].append(self.outcomes[name][seed].run.verdict)
                for measure in MEASURES:
                    value = float(self.measured[name][measure][place])
                    table[measure].append(value if isfinite(value) else None)
        return table

    def to_plain(self) -> dict[str, Any]:
        """All of it as JSON can hold it: means, effects, and how clients fare."""
        found: dict[str, Any] = {}
        for name in self.selections:
            losses, merges = self.client_means(name)
            found[name] = {
                "about": SELECTIONS[name],
                "means": {measure: _plain(self.mean(name, measure)) for measure in MEASURES},
                "against_baseline": {
                    e.measure: {**_plain(e.interval), "compared_by": MEASURES[e.measure].compared_by, "is": e.verdict}
                    for e in (self.effects(name) if name != BASELINE else ())
                },
                "client_losses": losses.tolist(),
                "client_merges": merges.tolist(),
            }
        return {
            "experiment": self.comparison.name,
            "seeds": list(self.seeds),
            "virtual_seconds": self.seconds,
            "baseline": BASELINE,
            "losses_on": self.part,
            "selections": found,
        }


def compare_selections(
    experiment: Experiment,
    selections: Sequence[str],
    seeds: Sequence[int],
    *,
    seconds: float | None = None,
    target: float | None = None,
    prepared: PreparedData | None = None,
    workers: int | None = None,
    watch: Watcher | None = None,
) -> Fairness:
    """Run an experiment with several ways of choosing clients, each for the same virtual time.

    Args:
        experiment: everything but the selection and the seed; its strategy dispatches and merges.
        selections: names of `SELECTIONS`; "uniform", the baseline, is always among them.
        seeds: whole numbers >= 0, each once; at least two for confidence intervals.
        seconds: the virtual time of every run, above 0; None for `budget.elapsed`, or else the time that uniform
            selection needs with the first seed for what the experiment's budget says.
        target: the objective to reach, above 0; None for 95 % of the way from the start to the best of any selection.
        prepared: the experiment's data, for its own seed, if they have been prepared already.
        workers: processes, at least 1; None for one per usable core.
        watch: called after each run as `watch(done, total, selection, seed)`.

    Returns:
        The runs, their measures and what can be told apart.

    Raises:
        ConfigError: there is no such selection, or the strategy cannot have it.

    >>> from asyncfed import presets
    >>> from asyncfed.strategies import FedBuff
    >>> base = presets.regression(strategy=FedBuff(concurrency=3, buffer_size=2), rounds=3)
    >>> compare_selections(base, ["fair"], seeds=[0], workers=1).selections
    ('uniform', 'fair')
    """
    experiment.require_measurements("comparing selections")
    if workers is not None and workers < 1:
        raise ConfigError(f"workers is {workers}; it must be at least 1.")
    if seconds is not None and not (isfinite(seconds) and seconds > 0):
        raise ConfigError(f"seconds is {seconds}; the virtual time of a run must be positive.")
    names = list(dict.fromkeys([BASELINE, *selections]))
    strategies = {name: with_selection(name, experiment.strategy) for name in names}
    if prepared is not None:
        problem_memory.keep(experiment, experiment.problem(prepared))
    try:
        as_scoring_problem(problem_memory.of(experiment))
        tasks = plan_tasks(experiment, strategies, seeds)
        seconds = seconds or experiment.budget.elapsed or _usual_time(tasks[0])
        timed = replace(experiment, budget=Budget(elapsed=seconds), stopping=None)
        done = do_tasks(plan_tasks(timed, strategies, seeds), workers, watch, _measure_fairness)
    finally:
        problem_memory.forget()
    outcomes = {name: {seed: done[name, seed] for seed in seeds} for name in names}
    runs = {name: {seed: outcome.run for seed, outcome in of.items()} for name, of in outcomes.items()}
    comparison = Comparison(experiment.name, tuple(names), tuple(seeds), runs, target)
    return Fairness(comparison, outcomes, seconds)


def _usual_time(task: Task) -> float:
    """The virtual time that the experiment's own budget comes to, with the baseline."""
    found = float(simulate_task(task).evaluations["elapsed"][-1])
    if not found > 0:
        raise ConfigError(
            "the clock of this experiment stands still, so runs have no common time. Choose other delays."
        )
    return found


def _measure_fairness(task: Task) -> FairnessOutcome:
    """Do one run, and measure its last model on every client's rows."""
    finished = simulate_task(task)
    problem = as_scoring_problem(problem_memory.of(task.experiment))
    part = next(name for name in ("test", "validation", "training") if name in problem.parts)
    loss = problem.client_scores(finished.params, part).loss
    dispatched = sum(event.kind == DISPATCH for event in finished.journal.event_rows())
    return FairnessOutcome(outcome_of(task, finished), loss, part, dispatched)


def _numbers_of(outcome: FairnessOutcome) -> dict[str, float]:
    """All measures of one run but the time to the target; NaN of a run that diverged."""
    merges, losses = outcome.run.participation.astype(np.float64), outcome.client_loss
    known = losses[np.isfinite(losses)]
    if outcome.run.verdict == "diverged" or not len(known) or not merges.sum():
        return dict.fromkeys([name for name in MEASURES if name != "time_to_target"], float("nan"))
    return {
        "mean_loss": float(known.mean()),
        "worst_loss": float(losses[worst_tenth(losses)].mean()),
        "loss_spread": float(known.std()),
        "least_share": float(merges.min() / merges.mean()),
        "jain_index": float(merges.sum() ** 2 / (len(merges) * (merges**2).sum())),
        "not_merged": 1.0 - float(merges.sum()) / max(1, outcome.dispatched),
    }


def _plain(interval: Interval) -> dict[str, float | int | None]:
    ends = {"mean": interval.mean, "low": interval.low, "high": interval.high}
    return {**{name: value if isfinite(value) else None for name, value in ends.items()}, "n": interval.n}
