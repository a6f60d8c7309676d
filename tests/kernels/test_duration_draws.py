"""Compiled draws of durations are those of the distributions, to the last bit."""

from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.delays import distributions as d
from asyncfed.kernels.duration_draws import SHAPES, agrees, draw, normal_quantile

DISTRIBUTIONS = [
    d.Constant(value=2.5),
    d.Uniform(low=0.5, high=3.25),
    d.Exponential(mean=1.7),
    d.ShiftedExponential(shift=0.3, mean=2.0),
    d.LogNormal(median=1.3, sigma=0.8),
    d.Pareto(minimum=0.7, shape=2.5),
]
units = st.floats(2.0**-53, 1.0 - 2.0**-53)


def test_every_shape_is_covered():
    assert {each.as_numbers()[0] for each in DISTRIBUTIONS} == set(SHAPES)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda each: each.as_numbers()[0])
@given(unit=units)
def test_a_draw_is_the_distributions_own(distribution, unit):
    shape, a, b = distribution.as_numbers()
    assert draw(SHAPES[shape], a, b, unit) == distribution.draw(unit)


@given(units)
def test_the_quantile_is_that_of_the_standard_library(unit):
    assert normal_quantile(unit) == NormalDist().inv_cdf(unit)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS[1:], ids=lambda each: each.as_numbers()[0])
def test_draws_that_differ_in_their_last_bits_are_found(distribution):
    shape, a, b = distribution.as_numbers()
    numbers = (SHAPES[shape], a, b)
    assert agrees(numbers, distribution.draw)
    assert not agrees(numbers, lambda u: distribution.draw(u) * (1 + 2.0**-52))
