"""The corrected tuning lemma on random sequences, and the schedule's transient."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.theory import bounds

seeds = st.integers(0, 2**32 - 1)


def random_lemma(seed):
    """Rates, z, v, l, d0 and a sequence (g_t) with d_t ≥ 0 throughout, now and then taking all it may."""
    chance = np.random.default_rng(seed)
    length, z = chance.integers(1, 40), chance.uniform(0.1, 3)
    rates = chance.uniform(0.001, 0.99, length) / z * chance.choice([1, 0.1])
    v, noise, start = chance.uniform(0.1, 2), chance.choice([0, chance.uniform(0, 2)]), chance.uniform(0, 5)
    greedy = chance.choice([0, 0.5, 1.0])
    gains, distance = np.zeros(length), start
    for t, rate in enumerate(rates):
        most = (1 - z * rate) * distance + noise * rate**2
        share = 1.0 if chance.random() < greedy or t == length - 1 else chance.random()
        gains[t] = share * most / (v * rate)
        distance = most - v * rate * gains[t]
    return rates, {"contraction": z, "gain": v, "noise": noise, "start": start}, gains, abs(distance) < 1e-12


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=300)
@given(seeds)
def test_the_corrected_lemma_is_never_broken_and_is_tight(seed):
    rates, lemma, gains, all_taken = random_lemma(seed)
    limits = bounds.tuning_any_rates(**lemma, rates=rates)
    for last in range(len(rates)):
        weights = bounds.tuning_weights(rates=rates[: last + 1], contraction=lemma["contraction"])
        average = bounds.weighted_average(gains[: last + 1], weights)
        assert average <= limits[last] * (1 + 1e-9)
    assert all_taken
    assert average == pytest.approx(limits[-1])


def test_the_tightness_catches_a_smaller_constant():
    rates, lemma, gains, _ = random_lemma(3)
    weights = bounds.tuning_weights(rates=rates, contraction=lemma["contraction"])
    smaller = bounds.tuning_any_rates(**{**lemma, "start": 0.999 * lemma["start"]}, rates=rates)[-1]
    assert bounds.weighted_average(gains, weights) > smaller


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.floats(0.01, 0.9), st.floats(0.1, 2), st.floats(0, 2), st.floats(0, 5))
def test_constant_rates_are_a_case_of_any_rates(shrink, z, noise, start):
    lemma = {"contraction": z, "gain": 0.5, "noise": noise, "start": start}
    any_rates = bounds.tuning_any_rates(**lemma, rates=np.full(30, shrink / z))
    constant = bounds.tuning_constant(**lemma, rate=shrink / z, last_index=np.arange(30))
    assert any_rates == pytest.approx(constant)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.floats(0.01, 0.99), st.floats(0, 1), st.lists(st.floats(0, 20), min_size=1, max_size=60))
def test_the_transient_of_the_schedule_is_bounded(shrink, penalty, delays):
    last = len(delays) - 1
    rates = bounds.decayed_rates(base_rate=shrink, last_index=last, delay_penalty=penalty, delays=delays)
    left = np.prod(1 - rates)
    limit = bounds.decayed_transient_bound(
        contraction=1, base_rate=shrink, last_index=last, delay_penalty=penalty, largest_delay=max(delays)
    )
    assert left <= limit * (1 + 1e-12)


def test_very_long_schedules_do_not_overflow():
    rates = bounds.decayed_rates(base_rate=0.9, last_index=1_000_000)
    assert bounds.tuning_weights(rates=rates, contraction=1).sum() == pytest.approx(1)
    limits = bounds.tuning_any_rates(contraction=1, gain=1, noise=1, start=1, rates=rates[:200_000])
    assert np.isfinite(limits).all()
    assert limits[-1] == pytest.approx(0.9 / 200_000**0.5, rel=0.01)


def test_wrong_arguments_are_named():
    with pytest.raises(ConfigError, match=r"delays has shape \(2,\), but there are 4 rates"):
        bounds.decayed_rates(base_rate=1, last_index=3, delays=[1, 2])
    with pytest.raises(ConfigError, match=r"contraction \* rates contains 1.0, but must be below 1"):
        bounds.tuning_weights(rates=[0.5], contraction=2)
    with pytest.raises(ConfigError, match=r"rates has shape \(0,\), but must be a list of numbers, at least one"):
        bounds.tuning_weights(rates=[], contraction=2)
    lemma = {"contraction": 1, "gain": 1, "noise": 0, "start": 1}
    with pytest.raises(
        ConfigError, match=r"^contraction \* rate is 1.0, but must be .*below 1\. Take a smaller rate\.$"
    ):
        bounds.tuning_constant(**lemma, rate=1.0, last_index=3)
    with pytest.raises(ConfigError, match=r"^contraction \* base_rate is 1.0, but must be below 1"):
        bounds.tuning_as_printed(**lemma, base_rate=1.0)
    with pytest.raises(ConfigError, match=r"values has shape \(2,\) and weights \(1,\)"):
        bounds.weighted_average([1, 2], [1])


def test_one_rate_is_a_list_of_one():
    lemma = {"contraction": 1, "gain": 1, "noise": 1, "start": 1}
    assert (
        bounds.tuning_any_rates(**lemma, rates=0.5).tolist() == bounds.tuning_any_rates(**lemma, rates=[0.5]).tolist()
    )
