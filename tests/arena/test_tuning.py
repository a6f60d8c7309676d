from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.arena.measured_run import RunOutcome, without_run
from asyncfed.arena.tuning import FINALISTS, MOST_RATES, STEP_LEVELS, best_trial, rate_at, tune
from asyncfed.core.errors import ConfigError


def outcome(time=None, left=0.5, verdict=None):
    word = verdict or ("not reached" if time is None else "reached")
    return RunOutcome(word, "", time, None, None, None, left, None, 10, time or 1.0)


def searched(times, count=7, seeds=3, limit=None):
    """The trials and all runs of a strategy whose time, or outcome, is `times(rate, steps)`."""
    runs = []

    def run(rate, steps, seed, limit):
        runs.append((rate, steps, seed, limit))
        found = times(rate, steps)
        if isinstance(found, RunOutcome):
            return found
        return outcome(found) if limit is None or found <= limit else outcome()

    return tune(1.0, count, seeds, limit, run), runs


def bowl(best_rate, best_steps):
    return lambda rate, steps: 10 * 2 ** (abs(log(rate / best_rate)) + abs(log(steps / best_steps)))


@given(
    st.sampled_from([rate_at(1.0, level) for level in range(-MOST_RATES, MOST_RATES + 1)]),
    st.sampled_from(STEP_LEVELS),
    st.integers(1, 12),
)
def test_every_strategy_has_the_same_number_of_trials(rate, steps, count):
    trials, runs = searched(bowl(rate, steps), count)
    assert len(trials) == count
    assert len(runs) == count + 2 * min(count, FINALISTS)
    assert len({(trial.rate, trial.steps) for trial in trials}) == count


@pytest.mark.parametrize("verdict", ["diverged", "refused", "failed", "not reached"])
def test_who_reaches_nothing_has_as_many_trials(verdict):
    trials, runs = searched(lambda rate, steps: outcome(verdict=verdict))
    assert (len(trials), len(runs)) == (7, 11)
    best_trial(trials)


def test_all_begin_with_the_same_setting():
    assert searched(bowl(9.0, 1))[1][0][:3] == searched(bowl(0.111, 16))[1][0][:3] == (1.0, 4, 0)


def test_a_near_best_setting_is_found():
    best = best_trial(searched(bowl(3.0, 1))[0])
    assert (best.rate, best.steps) == (3.0, 1)


def test_after_divergence_rates_fall():
    trials, _ = searched(lambda rate, steps: outcome(verdict="diverged") if rate > 0.05 else 100 * rate)
    assert best_trial(trials).rate < 0.05


def test_a_trial_is_given_up_when_it_is_slower_than_the_best():
    trials, _ = searched(bowl(3.0, 4), limit=1000.0)
    assert trials[0].limit == 1000.0
    for number in range(1, len(trials)):
        known = [before.outcome.time for before in trials[:number] if before.outcome.time is not None]
        assert trials[number].limit == min([1000.0, *known])


def test_the_luckiest_on_one_seed_is_not_taken():
    def run(rate, steps, seed, limit):
        if (rate, steps) == (3.0, 4):
            return outcome(5.0 if seed == 0 else None)
        return outcome(8.0) if limit is None or limit >= 8.0 else outcome()

    assert best_trial(tune(1.0, 7, 3, None, run)).rate == 1.0


def test_no_trial_at_all_is_refused():
    with pytest.raises(ConfigError, match="trials is 0"):
        tune(1.0, 0, 1, None, lambda rate, steps, seed, limit: without_run("refused", ""))
