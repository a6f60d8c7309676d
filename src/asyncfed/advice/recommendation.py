"""The recommendation: which strategy, what it saves against synchronous FedAvg, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from asyncfed.advice.finalists import DEFAULT, Finalist
from asyncfed.advice.scoring import AXIS_OF, Aim, Target, cost_of_target, place_of_target, score, total_cost
from asyncfed.advice.trial_run import TrialRun
from asyncfed.analysis.protocols import Axis
from asyncfed.analysis.statistics import Interval, geometric_interval
from asyncfed.core.record import Record, replace
from asyncfed.core.types import Budget
from asyncfed.experiment import Experiment, to_toml

MEASUREMENTS = 100
"""How often the recommended run measures its model."""


class SearchPoint(Record):
    """What settings that reached the target in the search cost on average.

    Args:
        name: the strategy.
        settings: its settings, as a text.
        time: virtual seconds to the target.
        bytes: down and up, to the target.
        energy: joules to the target.
        worst_loss: loss of the worst tenth of the clients at the end; None where it is not known.
    """

    name: str
    settings: str
    time: float
    bytes: float
    energy: float
    worst_loss: float | None


@dataclass(frozen=True, eq=False)
class Recommendation:
    """Which strategy to use, found by simulation, and how sure that is.

    Args:
        experiment: what was asked about, with the delays that were simulated.
        aim: what counts: "time", "bytes", "energy" or "worst_clients".
        target: what was to be reached.
        budget: the virtual seconds of each run.
        finalists: by label; all have runs with the same seeds.
        baseline: the label of synchronous FedAvg with its best settings.
        seeds: the finalists' seeds, none of which the search has seen.
        points: what the settings cost that reached the target in the search.
        num_runs: how many runs were simulated.
        notes: what a reader should know, sentences.
        favourite: the label of the finalist that was the best in the race; None if there was no race.
    """

    experiment: Experiment
    aim: Aim
    target: Target
    budget: float
    finalists: Mapping[str, Finalist]
    baseline: str
    seeds: tuple[int, ...]
    points: tuple[SearchPoint, ...]
    num_runs: int
    notes: tuple[str, ...] = ()
    favourite: str | None = None

    @property
    def winner(self) -> str:
        """The label of what is recommended: the best finalist, if it beats synchronous FedAvg, else that itself."""
        best = self._best
        if best in (self.baseline, DEFAULT) or self.ratio(best, self.baseline).high < 1:
            return best
        return self.baseline

    @property
    def _best(self) -> str:
        """The race's favourite, which was compared over more seeds than the finalists are.

        It is the first of the finalists instead if that missed the target less often, or if the interval of its ratio
        to the favourite lies below 1.
        """
        first, favourite = self.ranking[0], self.favourite
        if favourite is None or self.missed(first) < self.missed(favourite) or self.ratio(first, favourite).high < 1:
            return first
        return favourite

    @property
    def ranking(self) -> list[str]:
        """The labels, the best on the fresh seeds first; those that missed the target with a seed come last."""
        return sorted(self.finalists, key=self._score)

    @property
    def beats_synchronous(self) -> bool:
        """Whether the winner is better than synchronous FedAvg with its own best settings, the interval excluding 1."""
        return self.winner not in (self.baseline, DEFAULT)

    @property
    def not_distinguishable(self) -> list[str]:
        """The other finalists that may be as good as the winner: the interval of their ratio to it includes 1.

        Not those that missed the target with more seeds than the winner.
        """
        others = [label for label in self.ranking if label not in (self.winner, DEFAULT)]
        others = [label for label in others if self.missed(label) <= self.missed(self.winner)]
        return [label for label in others if not self.ratio(label, self.winner).low > 1]

    def missed(self, label: str) -> int:
        """With how many seeds the target was not reached within the budget."""
        return sum(place_of_target(run, self.target.level) is None for run in self._runs(label))

    def costs(self, label: str, axis: Axis) -> np.ndarray:
        """What reaching the target cost, seed by seed. Where it was missed, all that was spent: it would cost more."""
        runs, level = self._runs(label), self.target.level
        costs = [(cost_of_target(run, level, axis), total_cost(run, axis, self.budget)) for run in runs]
        return np.array([total if cost != cost else cost for cost, total in costs])

    def worst_losses(self, label: str) -> np.ndarray:
        """Loss of the worst tenth of the clients at the end, seed by seed, on test rows if there are any."""
        return np.array([np.nan if r.worst_test_loss is None else r.worst_test_loss for r in self._runs(label)])

    def worst_accuracy(self, label: str) -> float:
        """The mean over seeds of the accuracy of the worst tenth of the clients; NaN where targets are no labels."""
        found = [run.worst_test_accuracy for run in self._runs(label)]
        return float(np.mean([np.nan if value is None else value for value in found]))

    def jain_index(self, label: str) -> float:
        """The mean over seeds of Jain's index of participation."""
        return float(np.mean([run.jain_index for run in self._runs(label)]))

    def ratio(self, label: str, other: str, aim: Aim | None = None) -> Interval:
        """What `label` costs over what `other` costs: geometric mean over pairs with equal seeds, with 95 % interval.

        Where `other` missed the target it counts with all it spent, so that the ratio is an upper bound.

        Args:
            label: a finalist.
            other: the finalist that it is compared with.
            aim: what counts; None for that of the recommendation.
        """
        aim = self.aim if aim is None else aim
        if aim == "worst_clients":
            one, two = self.worst_losses(label), self.worst_losses(other)
        else:
            one, two = (self.costs(which, AXIS_OF[aim]) for which in (label, other))
        comparable = (one > 0) & (two > 0)
        return geometric_interval(one[comparable] / two[comparable])

    @property
    def recommended(self) -> Experiment:
        """The experiment with the winner: as many updates as it made within the budget."""
        winner, experiment = self.finalists[self.winner], self.experiment
        updates = max(1, *(run.updates[-1] for run in winner.runs.values()))
        often = replace(experiment.evaluation, every=max(1, updates // MEASUREMENTS), unit="update")
        return replace(experiment, strategy=winner.strategy, budget=Budget(updates=updates), evaluation=often)

    def to_toml(self) -> str:
        """The recommended experiment as TOML: for `asyncfed run`, `asyncfed live` and Flower."""
        return to_toml(self.recommended)

    def _runs(self, label: str) -> list[TrialRun]:
        return [self.finalists[label].runs[seed] for seed in self.seeds]

    def _score(self, label: str) -> float:
        return score(self._runs(label), self.target, self.aim, self.budget, whole=True)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings by name as one line.

    >>> settings_text({"rate": 0.0125, "max_staleness": None})
    'rate 0.0125, max_staleness none'
    """
    return ", ".join(f"{name} {_short(value)}" for name, value in settings.items())


def _short(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
