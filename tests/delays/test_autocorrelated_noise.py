"""Noise drawn place by place, in any order, has the law of the recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.random import purpose_key
from asyncfed.delays.autocorrelated_noise import autocorrelated_normal, halving_weights

KEY = purpose_key(3, "test")


def sequence(client: int, length: int, correlation: float) -> np.ndarray:
    weights = halving_weights(correlation)
    return np.array([autocorrelated_normal(KEY, client, place, weights) for place in range(length)])


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8, 0.97])
def test_it_is_standard_normal_and_its_correlation_falls_geometrically(correlation: float) -> None:
    x = np.array([sequence(client, 64, correlation) for client in range(100)])
    error = 4.0 / np.sqrt(x.size * (1.0 - correlation) / (1.0 + correlation))  # of a mean of correlated values
    assert abs(x.mean()) < error
    assert x.var() == pytest.approx(1.0, abs=2 * error)
    for lag in (1, 2, 5):
        assert np.mean(x[:, lag:] * x[:, :-lag]) == pytest.approx(correlation**lag, abs=2 * error)


def test_it_is_markov_given_the_present_the_past_says_nothing() -> None:
    """The partial correlation at lag 2 is that of an AR(1): none. A process of steps or of a moving mean has one."""
    x = np.array([sequence(client, 60, 0.8) for client in range(120)])
    left, middle, right = x[:, :-2].ravel(), x[:, 1:-1].ravel(), x[:, 2:].ravel()
    residuals = left - 0.8 * middle, right - 0.8 * middle
    assert np.corrcoef(*residuals)[0, 1] == pytest.approx(0.0, abs=0.05)


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.floats(0.0, 0.999))
def test_a_value_depends_on_its_place_alone(place: int, client: int, correlation: float) -> None:
    weights = halving_weights(correlation)
    first = autocorrelated_normal(KEY, client, place, weights)
    autocorrelated_normal(KEY, client, place + 1, weights)
    assert autocorrelated_normal(KEY, client, place, weights) == first
    assert abs(first) < 10.0


def test_clients_are_independent() -> None:
    a, b = sequence(0, 1000, 0.5), sequence(1, 1000, 0.5)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.15
