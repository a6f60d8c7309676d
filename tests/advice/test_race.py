"""Settings that a few seeds cannot tell apart are compared over more of them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.advice.conftest import small_experiment
from tests.advice.test_scoring import run_of

import asyncfed as af
from asyncfed.advice import race
from asyncfed.advice.finalists import FIRST_FRESH_SEED, choose_finalists
from asyncfed.advice.search import REFINING, RUNGS, Candidate, SearchPlan, SearchResult, run_trials
from asyncfed.advice.search_space import search_space

SEEDS = (0, 1, 2, 3)
BUDGET = 400.0
RELAPSE = 300
SPACES = tuple(
    search_space(name, strategy, small_experiment().problem().num_examples)
    for name, strategy in (("fedasync", af.strategies.FedAsync()), ("fedavg", af.strategies.FedAvg()))
)


class Noisy:
    """In place of a runner: settings take `usual[rate]` seconds to the target, times a factor that a seed decides."""

    def __init__(self, usual, noise, relapsing=()):
        self.usual = usual
        self.noise = noise
        self.relapsing = relapsing
        self.asked = []

    def run(self, experiments):
        self.asked += experiments
        return [self._run(experiment) for experiment in experiments]

    def _run(self, experiment):
        rate = experiment.strategy.work.learning_rate
        factor = 2.0 ** random.Random(f"{rate} {experiment.seed}").uniform(-self.noise, self.noise)
        needed, length = round(self.usual[rate] * factor), int(experiment.budget.elapsed)
        losses = [10.0] * min(needed, length) + [0.5] * (length - needed)
        if rate in self.relapsing and length > RELAPSE:
            losses[RELAPSE] = 10.0
        return run_of(losses)

    def raced(self):
        """How many runs had seeds of the race."""
        return sum(experiment.seed not in SEEDS for experiment in self.asked)


def searched(runner):
    """A search that has simulated all rates of FedAsync to the end, and one of FedAvg."""
    plan = SearchPlan(small_experiment(), SPACES, "fedavg", "time", "objective", 0.9, BUDGET, SEEDS, 0)
    result = SearchResult(plan, [run_of([10.0, 0.0])])
    wanted = [Candidate("fedasync", (level, *SPACES[0].default[1:])) for level in range(9)]
    wanted.append(Candidate("fedavg", SPACES[1].default))
    run_trials(result, runner, [(c, len(RUNGS) - 1, seed) for c in wanted for seed in SEEDS])
    return result


def rates(cost_of_level):
    return {rate: cost_of_level(level) for level, rate in enumerate(SPACES[0].choices[0].levels)}


@pytest.mark.slow
@pytest.mark.parametrize("best", [0, 5, 8])
def test_the_best_wins_whatever_a_few_seeds_say(best):
    runner = Noisy(rates(lambda level: 20 if level == best else 28), noise=1.0)
    result = searched(runner)
    race.race_all(result, runner)
    assert result.raced[0].levels[0] == best
    assert choose_finalists(result)[0] == result.raced[0]


def test_the_races_seeds_are_neither_the_searchs_nor_the_finalists():
    runner = Noisy(rates(lambda level: 20 + level), noise=1.0)
    result = searched(runner)
    runner.asked.clear()
    race.race_all(result, runner)
    used = {experiment.seed for experiment in runner.asked} - set(SEEDS)
    assert min(used) == race.FIRST_RACE_SEED
    assert max(used) < FIRST_FRESH_SEED
    assert len(runner.asked) <= race.planned_race(len(SEEDS))


def test_it_ends_when_one_is_left():
    runner = Noisy(rates(lambda level: 10 * (1 + level)), noise=0.01)
    result = searched(runner)
    runner.asked.clear()
    race.race_all(result, runner)
    assert runner.raced() == 9 * race.RACE[0][1]
    assert [candidate.levels[0] for candidate in result.raced[:9]] == list(range(9))


def test_those_that_tie_all_stay():
    runner = Noisy(rates(lambda level: 20), noise=0.0)
    result = searched(runner)
    before = [candidate for candidate in result.promising() if candidate.name == "fedasync"]
    race.race_all(result, runner)
    assert result.raced[:9] == before


def test_what_is_above_the_target_again_later_does_not_win():
    levels = SPACES[0].choices[0].levels
    runner = Noisy(rates(lambda level: 20 + 2 * level), noise=0.1, relapsing=levels[:5])
    plan = searched(runner).plan
    result = SearchResult(plan, [run_of([10.0, 0.0])])
    known, *others = [Candidate("fedasync", (level, *SPACES[0].default[1:])) for level in (8, *range(8))]
    run_trials(result, runner, [(known, len(RUNGS) - 1, seed) for seed in SEEDS])
    race.race(result, runner, [known, *others])
    assert result.raced[0].levels[0] == 5


def test_it_ends_when_it_would_be_long(monkeypatch):
    monkeypatch.setattr(race, "LONGEST", 0.0)
    runner = Noisy(rates(lambda level: 20), noise=1.0)
    result = searched(runner)
    runner.asked.clear()
    race.race_all(result, runner)
    assert runner.raced() == 9 * race.RACE[0][1]


def test_what_a_refinement_tried_with_one_seed_takes_part_by_its_distance_from_the_best():
    runner = Noisy(rates(lambda level: 20 + level), noise=0.0)
    result = searched(runner)
    result.horizons["fedasync", REFINING] = 100.0
    best = result.complete("fedasync")[0]
    other = Candidate("fedasync", (0, *(0 for _ in best.levels[1:])))
    run_trials(result, runner, [(best, REFINING, seed) for seed in SEEDS])
    run_trials(result, runner, [(other, REFINING, 0)])
    assert result.promising()[:2] == [best, other]


@settings(max_examples=8)
@given(st.lists(st.integers(1, 60), min_size=9, max_size=9))
def test_everyone_who_entered_is_ranked_once(costs):
    runner = Noisy(rates(lambda level: costs[level]), noise=0.5)
    result = searched(runner)
    entered = result.promising()
    race.race_all(result, runner)
    assert sorted(result.raced, key=repr) == sorted(entered, key=repr)
