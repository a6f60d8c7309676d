"""The search: settings proposed in batches, the worst given up after a part of the budget, the best refined.

Every decision is made when all runs of a batch are there, from their results alone. So the number of processes and
interruptions change how long it takes and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

from asyncfed.advice.cached_trials import TrialRunner
from asyncfed.advice.proposals import Tried, propose
from asyncfed.advice.scoring import Aim, Target, find_target, score
from asyncfed.advice.search_space import Space
from asyncfed.advice.trial_run import TrialRun
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record, replace
from asyncfed.core.types import Budget
from asyncfed.experiment import Experiment

RUNGS = (1 / 9, 1 / 3, 1.0)
"""The parts of the budget after which two thirds of a batch are given up."""

BATCH = 9
"""Settings of a strategy in a batch: 9 begin, 3 go on, 1 is simulated to its end over all search seeds."""

GENERATIONS = (None, 4, 3)
"""How many strategies take part in each batch, the best so far; None is all. The baseline always does."""

REFINED = 2
"""Strategies besides the baseline whose best settings are compared with all that differ in one level."""

REFINEMENTS = 5
"""How often that is done anew, as long as it finds better settings."""

CLOSE = log(1.1)
"""Neighbours that are worse by more on the first seed are not simulated with the others."""


class SearchPlan(Record):
    """What a search is about.

    Args:
        experiment: data, model and delays; its strategy and budget are replaced.
        spaces: the strategies by name, and what is searched of each.
        baseline: the name of the strategy that others are compared with; it is never given up.
        aim: what counts.
        metric: what the target is about.
        progress: the target's share of the way from the start to the best that any run reached.
        budget: the virtual seconds of a run.
        seeds: of the runs of a search, at least one.
        seed: of the proposals.
    """

    experiment: Experiment
    spaces: tuple[Space, ...]
    baseline: str
    aim: Aim
    metric: str
    progress: float
    budget: float
    seeds: tuple[int, ...]
    seed: int

    def space(self, name: str) -> Space:
        """The space of this strategy."""
        return next(space for space in self.spaces if space.name == name)

    def trial(self, candidate: Candidate, part: float, seed: int) -> Experiment:
        """The run of these settings over a part of the budget."""
        return replace(
            self.experiment,
            strategy=self.space(candidate.name).at(candidate.levels),
            budget=Budget(elapsed=part * self.budget),
            stopping=None,
            seed=seed,
        )


class Candidate(Record):
    """Settings of a strategy: its name, and the level of each choice."""

    name: str
    levels: tuple[int, ...]


class SearchResult:
    """All runs of a search, and how settings rank by them. The target follows what was reached so far.

    Args:
        plan: what is searched.
        others: runs that count for the target and belong to no settings, such as the pilot's.
    """

    def __init__(self, plan: SearchPlan, others: Sequence[TrialRun]) -> None:
        self.plan = plan
        self.runs: dict[Candidate, dict[tuple[int, int], TrialRun]] = {}
        self._others = list(others)
        self._target = find_target(plan.metric, others, plan.progress)

    @property
    def target(self) -> Target:
        """What is to be reached, by the best that any run reached so far."""
        if self._target is None:
            raise ConfigError(
                f"no run lowered {self.plan.metric} below where it started within {self.plan.budget:.4g} virtual "
                "seconds. Check the data and the model, give a longer --budget, or try a smaller --lr: the search goes "
                "down to a sixteenth of it."
            )
        return self._target

    def add(self, runs: Mapping[tuple[Candidate, int, int], TrialRun]) -> None:
        """Add runs by settings, rung and seed."""
        for (candidate, rung, seed), run in runs.items():
            self.runs.setdefault(candidate, {})[rung, seed] = run
        everything = [*self._others, *(run for of_one in self.runs.values() for run in of_one.values())]
        self._target = find_target(self.plan.metric, everything, self.plan.progress)

    def score(self, candidate: Candidate, rung: int, seeds: Sequence[int]) -> float:
        """The score over these seeds on a rung; less is better."""
        plan, runs = self.plan, [self.runs[candidate][rung, seed] for seed in seeds]
        return score(runs, self.target, plan.aim, RUNGS[rung] * plan.budget, RUNGS[rung] == 1.0)

    def complete(self, name: str | None = None) -> list[Candidate]:
        """The settings simulated to the end over all seeds, of one strategy or all: the best first."""
        last, seeds = len(RUNGS) - 1, self.plan.seeds
        found = [
            candidate
            for candidate, runs in self.runs.items()
            if name in (None, candidate.name) and all((last, seed) in runs for seed in seeds)
        ]
        return sorted(found, key=lambda candidate: self.score(candidate, last, seeds))

    def ranking(self) -> list[str]:
        """The strategies, the one with the best settings first."""
        return list(dict.fromkeys(candidate.name for candidate in self.complete()))

    def tried(self, name: str) -> list[Tried]:
        """All that was tried of a strategy, in order, with its present scores."""
        done, found = set(self.complete(name)), []
        for candidate, runs in self.runs.items():
            if candidate.name == name:
                rung = max(rung for rung, _ in runs)
                seeds = [seed for seed in self.plan.seeds if (rung, seed) in runs]
                found.append(Tried(candidate.levels, rung, self.score(candidate, rung, seeds), candidate in done))
        return found


def planned_runs(num_strategies: int, most_choices: int, num_seeds: int) -> int:
    """How many runs a search makes at most."""
    batch = BATCH + BATCH // 3 + num_seeds
    active = [num_strategies if kept is None else min(num_strategies, kept + 1) for kept in GENERATIONS]
    around = 2 * most_choices + 2 * (num_seeds - 1)
    return batch * sum(active) + REFINEMENTS * around * min(num_strategies, REFINED + 1)


def search(plan: SearchPlan, runner: TrialRunner, others: Sequence[TrialRun]) -> SearchResult:
    """Search each strategy's settings.

    Args:
        plan: what is searched.
        runner: what simulates.
        others: runs that count for the target, at least one.

    Returns:
        The runs, and how settings rank by them.
    """
    result = SearchResult(plan, others)
    active = [space.name for space in plan.spaces]
    for kept in GENERATIONS:
        if kept is not None:
            active = _keep(result.ranking(), kept, plan.baseline)
        _run_batch(plan, result, runner, active)
    for name in _keep(result.ranking(), REFINED, plan.baseline):
        for _ in range(REFINEMENTS):
            if not _refine(plan, result, runner, name):
                break
    return result


def _keep(ranking: list[str], count: int, baseline: str) -> list[str]:
    """The best, and the baseline."""
    return list(dict.fromkeys([*ranking[:count], baseline]))


def _run_batch(plan: SearchPlan, result: SearchResult, runner: TrialRunner, active: Sequence[str]) -> None:
    """Propose a batch for each strategy; on each rung, go on with the best third."""
    first, last = plan.seeds[0], len(RUNGS) - 1
    going = {
        name: [Candidate(name, levels) for levels in propose(plan.space(name), result.tried(name), BATCH, plan.seed)]
        for name in active
    }
    for rung in range(len(RUNGS)):
        seeds = plan.seeds if rung == last else (first,)
        _run(plan, result, runner, [(c, rung, seed) for of_one in going.values() for c in of_one for seed in seeds])
        going = {
            name: sorted(of_one, key=lambda c: result.score(c, rung, seeds))[: max(1, len(of_one) // 3)]
            for name, of_one in going.items()
        }


def _refine(plan: SearchPlan, result: SearchResult, runner: TrialRunner, name: str) -> bool:
    """Compare a strategy's best settings with all that differ in one level. Answers whether better ones were found."""
    best = result.complete(name)[0]
    first, *others = plan.seeds
    last, done = len(RUNGS) - 1, set(result.complete(name))
    around = [Candidate(name, levels) for levels in plan.space(name).neighbours(best.levels)]
    around = [candidate for candidate in around if candidate not in done]
    _run(plan, result, runner, [(candidate, last, first) for candidate in around])
    limit = result.score(best, last, [first]) + CLOSE
    ranked = sorted(around, key=lambda candidate: result.score(candidate, last, [first]))
    close = [candidate for candidate in ranked[:2] if result.score(candidate, last, [first]) <= limit]
    _run(plan, result, runner, [(candidate, last, seed) for candidate in close for seed in others])
    return result.complete(name)[0] != best


def _run(
    plan: SearchPlan, result: SearchResult, runner: TrialRunner, wanted: Sequence[tuple[Candidate, int, int]]
) -> None:
    if not wanted:
        return
    runs = runner.run([plan.trial(candidate, RUNGS[rung], seed) for candidate, rung, seed in wanted])
    result.add(dict(zip(wanted, runs, strict=True)))
