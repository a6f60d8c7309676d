"""A race: the best settings of a search, compared over more and more seeds until one is left or time is up.

With heavy-tailed delays, what settings cost varies by a factor between seeds. A few seeds then tell good settings from
bad ones, but not the best from the good ones. Nor may the finalists' seeds decide: who is chosen by them looks better
than it is. The race has seeds of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.advice.cached_trials import TrialRunner
from asyncfed.advice.search import COMPLETED, RACING, RUNGS, Candidate, SearchResult, horizon, run_trials
from asyncfed.analysis.statistics import mean_interval

FIRST_RACE_SEED = 100
"""The distance of the race's seeds from those of the search."""

RACE = ((24, 4), (16, 8), (10, 16), (6, 32), (4, 64))
"""How many settings take part at most, and over how many seeds they are compared then."""

BASELINE_ENTRANTS = 6
"""Settings of the baseline that are raced among themselves, so that it too is compared at its best."""

LEAST = 0.01
"""By how much at least, in logarithms, one must certainly be worse to leave: more than what decides between ties."""

SURENESS = 0.99
"""The level of the interval by which that is certain. Many are compared, and the best was chosen by the same runs."""

CHECKED = (RACING, len(RUNGS) - 1)
"""What is compared with the search's seeds after a race: runs as long as its own, and whole ones."""

LONGEST = 100.0
"""A race ends when its runs together are longer than so many whole budgets."""


def planned_race(num_seeds: int) -> int:
    """How many runs the races make at most, after a search with so many seeds."""
    counts = [(most, seeds - before) for (most, seeds), (_, before) in zip(RACE, [(0, 0), *RACE], strict=False)]
    raced = sum((most + min(most, BASELINE_ENTRANTS)) * seeds for most, seeds in counts)
    return raced + len(CHECKED) * (RACE[0][0] + BASELINE_ENTRANTS) * num_seeds


def race_all(result: SearchResult, runner: TrialRunner) -> None:
    """Race the best settings of all strategies but the baseline, and those of the baseline among themselves."""
    plan = result.plan
    ranked = result.promising()
    race(result, runner, [c for c in ranked if c.name != plan.baseline])
    race(result, runner, [c for c in ranked if c.name == plan.baseline][:BASELINE_ENTRANTS])


def race(result: SearchResult, runner: TrialRunner, entrants: Sequence[Candidate]) -> None:
    """Compare settings over the seeds of a race, fewer of them after each block of seeds.

    After a block the worst leave, and whoever is certainly worse than the best. The order in which they are at the end,
    the best first, is added to `result.raced`.

    Args:
        result: of the search; the runs are added to it.
        runner: what simulates.
        entrants: the settings, the best so far first; the first of RACE take part.
    """
    going, left, done, spent = list(entrants[: RACE[0][0]]), list[Candidate](), 0, 0.0
    if len(going) > 1:
        names = {candidate.name for candidate in going}
        seconds = horizon(result, next(candidate for candidate in result.complete() if candidate.name in names))
        result.horizons |= {(candidate.name, RACING): seconds for candidate in going}
        for most, num_seeds in RACE:
            out, going = going[most:], going[:most]
            left = out + left
            seeds = _seeds(result, num_seeds)
            spent += len(going) * (num_seeds - done) * seconds
            if len(going) == 1 or (done and spent > LONGEST * result.plan.budget):
                break
            run_trials(result, runner, [(c, RACING, seed) for c in going for seed in seeds[done:]])
            done = num_seeds
            going = sorted(going, key=lambda c: result.score(c, RACING, seeds))
            worse = [c for c in going[1:] if _is_worse(result, c, going[0], seeds)]
            going = [c for c in going if c not in worse]
            left = worse + left
    result.raced += _check(result, runner, [*going, *left])


def _check(result: SearchResult, runner: TrialRunner, ranked: Sequence[Candidate]) -> list[Candidate]:
    """The order of a race, after what is in front was also simulated to the end with the search's seeds.

    Runs of a race are short. With a large rate a model may be below the target for as long as they last, and above it
    again later. What settings need more in whole runs is added to their score. That can only make them worse, so it is
    enough to go on until the best with it is before all that are left without it.
    """
    if len(ranked) < 2:  # there was no race
        return list(ranked)
    known = {candidate: _score(result, candidate, ranked[0]) for candidate in ranked}
    waiting, checked = sorted(ranked, key=lambda c: known[c]), dict[Candidate, float]()
    while waiting and (not checked or min(checked.values()) > known[waiting[0]]):
        some, waiting = waiting[:COMPLETED], waiting[COMPLETED:]
        run_trials(result, runner, [(c, rung, seed) for c in some for rung in CHECKED for seed in result.plan.seeds])
        for candidate in some:
            short, whole = (result.score(candidate, rung, result.plan.seeds) for rung in CHECKED)
            checked[candidate] = known[candidate] + max(0.0, whole - short)
    return [*sorted(checked, key=lambda c: checked[c]), *waiting]


def _score(result: SearchResult, candidate: Candidate, leader: Candidate) -> float:
    """The leader's score plus what settings differ from it over the seeds that they have both had."""
    seeds, own = ([seed for rung, seed in result.runs[c] if rung == RACING] for c in (leader, candidate))
    both = [seed for seed in own if seed in seeds]
    distance = result.score(candidate, RACING, both) - result.score(leader, RACING, both)
    return result.score(leader, RACING, seeds) + distance


def _seeds(result: SearchResult, count: int) -> list[int]:
    first = result.plan.seed + FIRST_RACE_SEED
    return list(range(first, first + count))


def _is_worse(result: SearchResult, one: Candidate, other: Candidate, seeds: Sequence[int]) -> bool:
    """Whether `one` costs more than `other`: at least 1 % more, by the paired 99 % interval."""
    scores = np.array([[result.score(candidate, RACING, [seed]) for seed in seeds] for candidate in (one, other)])
    return mean_interval(scores[0] - scores[1], SURENESS).low > LEAST
