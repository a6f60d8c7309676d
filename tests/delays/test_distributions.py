"""Distributions agree with scipy's, draw for draw, and refuse parameters that make no sense."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from asyncfed.core.errors import ConfigError
from asyncfed.delays import Constant, Distribution, Exponential, LogNormal, Pareto, ShiftedExponential, Uniform
from asyncfed.delays.distributions import LARGEST_UNIT

TWINS = [
    (Uniform(low=1.0, high=4.0), stats.uniform(loc=1.0, scale=3.0)),
    (Exponential(mean=2.5), stats.expon(scale=2.5)),
    (ShiftedExponential(shift=0.5, mean=2.0), stats.expon(loc=0.5, scale=2.0)),
    (LogNormal(median=3.0, sigma=0.7), stats.lognorm(s=0.7, scale=3.0)),
    (Pareto(minimum=2.0, shape=2.5), stats.pareto(b=2.5, scale=2.0)),
]
names = [type(ours).__name__ for ours, _ in TWINS]


@pytest.mark.parametrize(("ours", "scipys"), TWINS, ids=names)
def test_draws_are_the_quantiles_of_scipy(ours: Distribution, scipys: stats.rv_continuous) -> None:
    for u in (2.0**-54, 1e-6, 0.01, 0.1, 0.5, 0.9, 0.99, 1 - 1e-6, LARGEST_UNIT):
        assert ours.draw(u) == pytest.approx(scipys.ppf(u), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("ours", "scipys"), TWINS, ids=names)
def test_expected_is_the_mean_of_scipy_and_of_the_draws(ours: Distribution, scipys: stats.rv_continuous) -> None:
    assert ours.expected() == pytest.approx(scipys.mean())
    middles = (np.arange(200_000) + 0.5) / 200_000
    assert np.mean([ours.draw(u) for u in middles.tolist()]) == pytest.approx(ours.expected(), rel=0.01)


def test_a_constant_is_constant() -> None:
    assert {Constant(value=3.0).draw(u) for u in (0.1, 0.5, 0.9)} == {3.0}
    assert Constant(value=3.0).expected() == 3.0


@given(st.sampled_from([ours for ours, _ in TWINS]), st.floats(2**-54, LARGEST_UNIT), st.floats(2**-54, LARGEST_UNIT))
def test_draws_grow_with_the_uniform_number_and_are_durations(ours: Distribution, u: float, v: float) -> None:
    low, high = sorted((u, v))
    assert 0.0 <= ours.draw(low) <= ours.draw(high) < inf


def test_means_that_do_not_exist_are_infinite() -> None:
    assert Pareto(minimum=1.0, shape=1.0).expected() == inf
    assert Pareto(minimum=1.0, shape=0.5).expected() == inf
    assert LogNormal(median=1.0, sigma=50.0).expected() == inf


def test_the_mean_of_a_lognormal_exceeds_its_median() -> None:
    assert log(LogNormal(median=exp(1.0), sigma=2.0).expected()) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Constant(value=-1.0), "constant.value is -1.0; it must be a finite number, zero or more"),
        (lambda: Constant(value=float("nan")), "constant.value is nan"),
        (lambda: Constant(value="2"), "constant.value is '2'"),  # type: ignore[arg-type]
        (lambda: Uniform(low=-1.0, high=2.0), "uniform.low is -1.0"),
        (lambda: Uniform(low=0.0, high=inf), "uniform.high is inf"),
        (lambda: Uniform(low=3.0, high=2.0), "uniform.low is 3.0 and uniform.high is 2.0; low must not exceed high"),
        (lambda: Exponential(mean=0.0), "exponential.mean is 0.0; it must be a finite number above zero. For no delay"),
        (lambda: Exponential(mean=1e308), "Lower mean"),
        (lambda: ShiftedExponential(shift=-0.1, mean=1.0), "shifted_exponential.shift is -0.1"),
        (lambda: ShiftedExponential(shift=0.1, mean=0.0), "shifted_exponential.mean is 0.0"),
        (lambda: LogNormal(median=0.0, sigma=1.0), "lognormal.median is 0.0"),
        (lambda: LogNormal(median=1.0, sigma=-1.0), "lognormal.sigma is -1.0"),
        (lambda: LogNormal(median=1.0, sigma=100.0), "sigma=100.0) is not a finite number. Lower sigma or median"),
        (lambda: Pareto(minimum=0.0, shape=1.0), "pareto.minimum is 0.0"),
        (lambda: Pareto(minimum=1.0, shape=0.0), "pareto.shape is 0.0"),
        (lambda: Pareto(minimum=1.0, shape=0.01), "shape=0.01) is not a finite number. Raise shape"),
    ],
)
def test_bad_parameters_are_refused_with_value_and_limit(make: Callable[[], Distribution], text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        make()
