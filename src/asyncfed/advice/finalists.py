"""The finalists: the best settings that the search found, run again with seeds that it has not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asyncfed.advice.cached_trials import TrialRunner
from asyncfed.advice.search import Candidate, SearchPlan, SearchResult
from asyncfed.advice.search_space import read_settings
from asyncfed.advice.trial_run import TrialRun
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.strategies.protocol import Strategy

BEST_STRATEGIES = 3
"""Strategies whose best settings are finalists; the baseline's always are."""

FURTHER = 2
"""Further settings, of whatever strategy, that came next."""

DEFAULT = "fedavg, default"
"""The label of synchronous FedAvg with its default settings."""

MOST_FINALISTS = BEST_STRATEGIES + FURTHER + 2
FIRST_FRESH_SEED = 1000
"""The distance of the finalists' seeds from those of the search."""


@dataclass(frozen=True, eq=False)
class Finalist:
    """Settings of a strategy and their runs over fresh seeds.

    Args:
        label: what they are called: the strategy's name, numbered if there are several of it.
        strategy: the strategy with these settings.
        settings: those that were searched, by name.
        runs: one run for each fresh seed.
    """

    label: str
    strategy: Strategy
    settings: Mapping[str, Any]
    runs: Mapping[int, TrialRun]


def choose_finalists(result: SearchResult) -> list[Candidate]:
    """The best settings of the best strategies, of the baseline, and what came next: the race's favourite first.

    What was raced is ranked by that; behind it comes what was not, by the search.
    """
    ranked = list(dict.fromkeys([*result.raced, *result.complete()]))
    others = [candidate for candidate in ranked if candidate.name != result.plan.baseline]
    own = [candidate for candidate in ranked if candidate.name == result.plan.baseline]
    names = list(dict.fromkeys(candidate.name for candidate in others))[:BEST_STRATEGIES]
    chosen = [next(candidate for candidate in others if candidate.name == name) for name in names]
    chosen += own[:1]
    return chosen + [candidate for candidate in [*others, *own] if candidate not in chosen][:FURTHER]


def run_finalists(
    result: SearchResult, default: Strategy, seeds: Sequence[int], runner: TrialRunner
) -> dict[str, Finalist]:
    """Run the finalists and default FedAvg with the same fresh seeds.

    Args:
        result: of the search.
        default: synchronous FedAvg with its default settings.
        seeds: not used in the search.
        runner: what simulates.

    Returns:
        The finalists by label, the best of the search first; default FedAvg is the last.
    """
    plan = result.plan
    strategies = {label: plan.space(c.name).at(c.levels) for label, c in _labels(choose_finalists(result)).items()}
    strategies[DEFAULT] = default
    wanted = [(label, seed) for label in strategies for seed in seeds]
    runs = runner.run([_final_run(plan, strategies[label], seed) for label, seed in wanted])
    done = dict(zip(wanted, runs, strict=True))
    return {
        label: Finalist(label, strategy, _settings(plan, label, strategy), {seed: done[label, seed] for seed in seeds})
        for label, strategy in strategies.items()
    }


def _final_run(plan: SearchPlan, strategy: Strategy, seed: int) -> Any:
    budget = Budget(elapsed=plan.budget)
    return replace(plan.experiment, strategy=strategy, budget=budget, stopping=None, seed=seed)


def _labels(chosen: Sequence[Candidate]) -> dict[str, Candidate]:
    """The strategy's name, numbered from the second of its settings on."""
    labelled: dict[str, Candidate] = {}
    for candidate in chosen:
        count = sum(other.name == candidate.name for other in labelled.values())
        labelled[candidate.name if not count else f"{candidate.name} ({count + 1})"] = candidate
    return labelled


def _settings(plan: SearchPlan, label: str, strategy: Strategy) -> dict[str, Any]:
    name = plan.baseline if label == DEFAULT else label.partition(" (")[0]
    return read_settings(strategy, tuple(choice.name for choice in plan.space(name).choices))
