"""Bounds on error rates against scipy's own, and on what they say about mu and epsilon."""

from math import exp, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from asyncfed.core.errors import ConfigError
from asyncfed.privacy.gaussian import epsilon_of_shift, log_delta
from asyncfed.privacy_audit.lower_bounds import epsilon_bound, error_rate_bound, shift_bound, trade_off

rates = st.floats(0.001, 0.999)


@given(st.integers(0, 300), st.integers(0, 300), st.sampled_from([0.9, 0.95, 0.999]))
def test_the_rate_bound_is_clopper_and_pearsons(errors, others, confidence):
    trials = errors + others + 1
    interval = stats.binomtest(errors, trials, alternative="less").proportion_ci(confidence, method="exact")
    assert error_rate_bound(errors, trials, confidence) == pytest.approx(interval.high, rel=1e-9)


@given(st.floats(0.01, 6.0), rates)
def test_the_best_test_of_a_shift_gives_that_shift(mu, alpha):
    beta = stats.norm.cdf(stats.norm.ppf(1 - alpha) - mu)
    assert trade_off(alpha, mu) == pytest.approx(beta, rel=1e-9)
    assert shift_bound(alpha, beta) == pytest.approx(mu, abs=1e-6)


@given(st.floats(0.05, 4.0), rates)
def test_epsilon_without_an_assumption_is_never_above_the_gaussian_one(mu, alpha):
    beta = float(stats.norm.cdf(stats.norm.ppf(1 - alpha) - mu))
    assert epsilon_bound(alpha, beta, 1e-5) <= epsilon_of_shift(mu, 1e-5) + 1e-9


def test_epsilon_without_an_assumption_is_met_by_the_best_threshold():
    """At some threshold delta(epsilon) is (1 - beta) - e^epsilon alpha exactly."""
    mu, epsilon = 1.0, 1.5
    delta = exp(log_delta(epsilon, mu))
    threshold = epsilon / mu + mu / 2
    alpha, beta = float(stats.norm.sf(threshold)), float(stats.norm.cdf(threshold - mu))
    assert epsilon_bound(alpha, beta, delta) == pytest.approx(epsilon, abs=1e-9)


def test_guessing_says_nothing_and_certainty_everything():
    assert shift_bound(0.5, 0.5) == shift_bound(0.7, 0.7) == 0.0
    assert epsilon_bound(0.5, 0.5, 1e-5) == pytest.approx(0.0, abs=1e-4)
    assert shift_bound(0.0, 0.0) == epsilon_bound(0.0, 0.1, 1e-5) == inf
    assert epsilon_bound(1.0, 1.0, 1e-5) == 0.0


def test_the_bound_on_a_rate_holds_as_often_as_it_says():
    chance = np.random.default_rng(0)
    errors = chance.binomial(60, 0.2, size=2000)
    held = np.mean([error_rate_bound(int(count), 60, 0.95) >= 0.2 for count in errors])
    assert held >= 0.945


@pytest.mark.parametrize(("errors", "trials", "confidence"), [(1, 0, 0.95), (3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_what_cannot_be_is_refused(errors, trials, confidence):
    with pytest.raises(ConfigError):
        error_rate_bound(errors, trials, confidence)
