from math import erfc, exp, inf, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.privacy.gaussian import epsilon_of, epsilon_of_shift, log_delta, multiplier_for, shift_for


def test_the_values_to_hold():
    assert epsilon_of(multiplier=4.0, participations=10, delta=1e-5) == pytest.approx(3.34140947, abs=5e-9)
    assert multiplier_for(epsilon=2.0, participations=10, delta=1e-5) == pytest.approx(6.30498856, abs=5e-9)


def plain_delta(epsilon: float, mu: float) -> float:
    """The formula as it is written, good where nothing is extreme: the readable twin."""

    def phi(x: float) -> float:
        return erfc(-x / sqrt(2.0)) / 2.0

    return phi(mu / 2.0 - epsilon / mu) - exp(epsilon) * phi(-mu / 2.0 - epsilon / mu)


@given(st.floats(0.0, 8.0), st.floats(0.2, 12.0))
@settings(max_examples=60, deadline=None)
def test_log_delta_is_the_formula(epsilon, mu):
    plain = plain_delta(epsilon, mu)
    assert exp(log_delta(epsilon, mu)) == pytest.approx(plain, rel=1e-9, abs=1e-12)


@given(st.floats(1e-4, 1e4), st.floats(-600.0, -0.1))
@settings(max_examples=60, deadline=None)
def test_epsilon_and_shift_are_inverse_however_extreme(mu, log10_half):
    delta = 10.0 ** (log10_half / 2.0)
    epsilon = epsilon_of_shift(mu, delta)
    if epsilon == 0.0:
        assert log_delta(0.0, mu) <= log(delta)
    else:
        assert log_delta(epsilon, mu) == pytest.approx(log(delta), rel=1e-9, abs=1e-8)
        assert shift_for(epsilon, delta) == pytest.approx(mu, rel=1e-6)


def test_more_noise_or_fewer_releases_cost_less():
    assert epsilon_of(2.0, 10, 1e-5) > epsilon_of(4.0, 10, 1e-5) > epsilon_of(4.0, 5, 1e-5) > 0.0
    assert epsilon_of(4.0, 0, 1e-5) == 0.0
    # No sampling is claimed: noise 1 over 10 releases costs 17.86, where a sampled accountant would say 1.83.
    assert epsilon_of(1.0, 10, 1e-5) == pytest.approx(17.86, abs=0.005)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: epsilon_of(0.0, 1, 1e-5), "without noise"),
        (lambda: epsilon_of(1.0, 1, 0.0), "delta is 0.0"),
        (lambda: epsilon_of(1.0, 1, 1.0), "delta is 1.0"),
        (lambda: multiplier_for(0.0, 1, 1e-5), "epsilon is 0.0"),
        (lambda: multiplier_for(inf, 1, 1e-5), "epsilon is inf"),
        (lambda: multiplier_for(1e300, 1, 1e-5), "nothing is hidden"),
        (lambda: multiplier_for(1.0, 0, 1e-5), "participations is 0"),
    ],
)
def test_impossible_numbers_are_refused(call, word):
    with pytest.raises(ConfigError, match=word):
        call()
