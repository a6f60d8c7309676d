"""The search: settings proposed in batches, the worst given up after a part of the budget, the best refined.

Every decision is made when all runs of a batch are there, from their results alone. So the number of processes and
interruptions change how long it takes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import log

from asyncfed.advice.cached_trials import TrialRunner
from asyncfed.advice.proposals import Tried, propose
from asyncfed.advice.scoring import Aim, Target, cost_of_target, find_target, score
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

REFINED = 3
"""Strategies besides the baseline whose settings are refined."""

REFINEMENTS = 6
"""How often all that differs in one level from the best settings is tried, as long as that finds better ones."""

HORIZON = 4.0
"""Refinements are simulated for so many times as long as the strategy's best settings needed to the target."""

CLOSE = log(1.3)
SCREENED = 5
"""Of refined settings, those go on to the other seeds that are at most this much worse with the first, at most 5."""

COMPLETED = 4
"""How many refined settings of a strategy are simulated over the whole budget."""

REFINING = len(RUNGS)
RACING = REFINING + 1
"""The numbers under which runs of a refinement and of a race are kept, after those of the rungs."""


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

    def trial(self, candidate: Candidate, seconds: float, seed: int) -> Experiment:
        """The run of these settings for so many virtual seconds."""
        return replace(
            self.experiment,
            strategy=self.space(candidate.name).at(candidate.levels),
            budget=Budget(elapsed=seconds),
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
        self.horizons: dict[tuple[str, int], float] = {}
        self.raced: list[Candidate] = []
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
        runs = [self.runs[candidate][rung, seed] for seed in seeds]
        seconds, budget = self.seconds(candidate.name, rung), self.plan.budget
        return score(runs, self.target, self.plan.aim, seconds, whole=seconds >= budget)

    def seconds(self, name: str, rung: int) -> float:
        """How long a strategy is simulated on a rung, in a refinement or in a race."""
        return self.horizons[name, rung] if rung >= REFINING else RUNGS[rung] * self.plan.budget

    def complete(self, name: str | None = None, rung: int = len(RUNGS) - 1) -> list[Candidate]:
        """The settings simulated on a rung, by default to the end, over all seeds: the best first."""
        last, seeds = rung, self.plan.seeds
        found = [
            candidate
            for candidate, runs in self.runs.items()
            if name in (None, candidate.name) and all((last, seed) in runs for seed in seeds)
        ]
        return sorted(found, key=lambda candidate: self.score(candidate, last, seeds))

    def promising(self) -> list[Candidate]:
        """All settings that were simulated to the end or in a refinement, the best first.

        Those that a refinement has simulated with the first seed only count as their strategy's best settings plus what
        they differ from it with that seed.
        """
        seeds, first, found = self.plan.seeds, self.plan.seeds[:1], dict[Candidate, float]()
        for name, rung in product(self.ranking(), (len(RUNGS) - 1, REFINING)):
            whole = self.complete(name, rung)
            found = {candidate: self.score(candidate, rung, seeds) for candidate in whole} | found
            for candidate, runs in self.runs.items():
                if candidate.name == name and (rung, *first) in runs and candidate not in found:
                    distance = self.score(candidate, rung, first) - self.score(whole[0], rung, first)
                    found[candidate] = found[whole[0]] + distance
        return sorted(found, key=lambda candidate: found[candidate])

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
    single, double = 2 * most_choices, 2 * most_choices * (most_choices - 1)
    around = REFINEMENTS * (single + SCREENED * num_seeds) + double + SCREENED * num_seeds
    refined = (1 + COMPLETED) * num_seeds + around
    return batch * sum(active) + refined * min(num_strategies, REFINED + 1)


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
        _refine(plan, result, runner, name)
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
        run_trials(result, runner, [(c, rung, seed) for of_one in going.values() for c in of_one for seed in seeds])
        going = {
            name: sorted(of_one, key=lambda c: result.score(c, rung, seeds))[: max(1, len(of_one) // 3)]
            for name, of_one in going.items()
        }


def _refine(plan: SearchPlan, result: SearchResult, runner: TrialRunner, name: str) -> None:
    """Walk from a strategy's best settings to better ones that differ in one level, or at the end in two.

    Runs are only as long as it takes to tell, so that many can be made; the best are then simulated to the end.
    """
    best, space = result.complete(name)[0], plan.space(name)
    result.horizons[name, REFINING] = horizon(result, best)
    run_trials(result, runner, [(best, REFINING, seed) for seed in plan.seeds])
    for _ in range(REFINEMENTS):
        if not _try_around(plan, result, runner, name, space.neighbours):
            break
    _try_around(plan, result, runner, name, space.second_neighbours)
    chosen = result.complete(name, REFINING)[:COMPLETED]
    done, last = set(result.complete(name)), len(RUNGS) - 1
    run_trials(result, runner, [(c, last, seed) for c in chosen if c not in done for seed in plan.seeds])


def horizon(result: SearchResult, best: Candidate) -> float:
    """HORIZON times what the settings needed; the whole budget where the end counts, or the target was missed."""
    plan, level = result.plan, result.target.level
    runs = [result.runs[best][len(RUNGS) - 1, seed] for seed in plan.seeds]
    needed = max(cost_of_target(run, level, "elapsed") for run in runs)
    if plan.aim == "worst_clients" or needed != needed:
        return plan.budget
    return min(plan.budget, HORIZON * needed)


def _try_around(
    plan: SearchPlan,
    result: SearchResult,
    runner: TrialRunner,
    name: str,
    around: Callable[[tuple[int, ...]], list[tuple[int, ...]]],
) -> bool:
    """Compare a strategy's best settings with those around them. Answers whether better ones were found."""
    best = result.complete(name, REFINING)[0]
    first, *others = plan.seeds
    found = [Candidate(name, levels) for levels in around(best.levels)]
    new = [c for c in found if (REFINING, first) not in result.runs.get(c, {})]
    run_trials(result, runner, [(candidate, REFINING, first) for candidate in new])
    limit = result.score(best, REFINING, [first]) + CLOSE
    ranked = sorted(new, key=lambda candidate: result.score(candidate, REFINING, [first]))
    close = [candidate for candidate in ranked[:SCREENED] if result.score(candidate, REFINING, [first]) <= limit]
    run_trials(result, runner, [(candidate, REFINING, seed) for candidate in close for seed in others])
    return result.complete(name, REFINING)[0] != best


def run_trials(result: SearchResult, runner: TrialRunner, wanted: Sequence[tuple[Candidate, int, int]]) -> None:
    """Simulate settings on rungs with seeds, and add the runs to the result."""
    if not wanted:
        return
    runs = runner.run([result.plan.trial(c, result.seconds(c.name, rung), seed) for c, rung, seed in wanted])
    result.add(dict(zip(wanted, runs, strict=True)))
