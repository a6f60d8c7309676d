"""Rounding to shorter formats: once, to the nearest, ties to even, and never to infinity."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.uplinks.number_formats import narrow, rounding_share, widen

BFLOATS = (np.arange(0x7F80, dtype=np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
"""All that are finite and not negative, in increasing order."""


def nearest_bfloat(value):
    """By comparison with its neighbours, exactly."""
    size = min(abs(value), BFLOATS[-1])
    above = int(np.searchsorted(BFLOATS, size))
    below = max(above - 1, 0)
    to_above, to_below = Fraction(BFLOATS[above]) - Fraction(size), Fraction(size) - Fraction(BFLOATS[below])
    place = above if to_above < to_below or (to_above == to_below and above % 2 == 0) else below
    return float(np.copysign(BFLOATS[place], value))


def through(value, form, dtype):
    return float(widen(narrow(np.array([value], dtype), form), form, np.dtype(dtype))[0])


@st.composite
def near_ties(draw):
    """Halfway between two bfloat16 numbers, and a little off it: where rounding twice goes wrong."""
    place = draw(st.integers(0, BFLOATS.size - 2))
    middle = (BFLOATS[place] + BFLOATS[place + 1]) / 2
    return middle * (1 + draw(st.sampled_from([0.0, 2.0**-52, -(2.0**-52), 2.0**-30, -(2.0**-30)])))


@given(st.one_of(near_ties(), st.floats(allow_nan=False, allow_infinity=False)))
def test_bfloat16_is_rounded_once(value):
    assert through(value, "bfloat16", np.float64) == nearest_bfloat(value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_bfloat16_of_single_precision(value):
    assert through(value, "bfloat16", np.float32) == nearest_bfloat(value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("form", "largest"), [("float16", 65504.0), ("bfloat16", BFLOATS[-1]), ("float32", None)])
def test_beyond_the_range_is_the_largest_and_what_is_not_finite_stays(form, largest, dtype):
    most = float(np.finfo(dtype).max)
    expected = min(most, largest or float(np.finfo(np.float32).max))
    assert through(most, form, dtype) == expected
    assert through(-most, form, dtype) == -expected
    assert through(np.inf, form, dtype) == np.inf
    assert through(-np.inf, form, dtype) == -np.inf
    assert np.isnan(through(np.nan, form, dtype))
    assert np.isnan(through(-np.nan, form, dtype))


@given(st.floats(1.2e-38, 3e38), st.sampled_from(["bfloat16", "float32"]))
def test_the_rounding_is_within_the_share_that_is_said(value, form):
    assert abs(through(value, form, np.float64) - value) <= rounding_share(form) * value
