"""Work pauses while a client is away, and the formula agrees with watching the clock."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.delays import Availability

# Quarters are exact in floats, so equality below is equality and a window's edge is an edge.
quarters = st.integers(0, 200).map(lambda n: n / 4)


@st.composite
def half_days(draw: st.DrawFn) -> tuple[Availability, float]:
    """An availability whose window is a whole number of quarters (or all of the period), and a phase."""
    period = 2.0 ** draw(st.integers(0, 4))
    on_quarters = draw(st.integers(1, int(period * 4)))
    return Availability(period=period, on_fraction=on_quarters / 4 / period), draw(
        st.integers(0, int(period * 4) - 1)
    ) / 4


def watched(availability: Availability, start: float, seconds: float, phase: float) -> float:
    """The same by looking, every quarter of a second, whether the client is there."""
    period, left, now = Fraction(availability.period), Fraction(seconds), Fraction(start)
    while left > 0:
        if (now - Fraction(phase)) % period < Fraction(availability.on_fraction) * period:
            left -= Fraction(1, 4)
        now += Fraction(1, 4)
    return float(now)


@given(half_days(), quarters, quarters)
def test_finish_equals_watching_the_clock(case: tuple[Availability, float], start: float, seconds: float) -> None:
    availability, phase = case
    assert availability.finish(start, seconds, phase) == watched(availability, start, seconds, phase)


@given(half_days(), quarters, quarters, quarters)
def test_work_in_two_parts_ends_when_work_in_one_does(
    case: tuple[Availability, float], start: float, first: float, second: float
) -> None:
    availability, phase = case
    between = availability.finish(start, first, phase)
    assert availability.finish(between, second, phase) == availability.finish(start, first + second, phase)


@given(
    st.floats(0.1, 1e4),
    st.floats(0.01, 1.0),
    st.floats(0.0, 1.0),
    st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)),
    st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)),
)
def test_finish_is_monotone_and_never_early(
    period: float, on_fraction: float, turn: float, starts: tuple[float, float], works: tuple[float, float]
) -> None:
    availability = Availability(period=period, on_fraction=on_fraction)
    phase = turn * period
    (early, late), (little, much) = sorted(starts), sorted(works)
    # Where work ends with a window, rounding may push it into the next: a little more work covers for it.
    more = much + 1e-6
    assert availability.finish(early, little, phase) >= early + little
    assert availability.finish(early, little, phase) <= availability.finish(early, more, phase)
    assert availability.finish(early, much, phase) <= availability.finish(late, more, phase)


@given(st.floats(0.1, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_always_there_is_no_pause(period: float, start: float, seconds: float, phase: float) -> None:
    assert Availability(period=period, on_fraction=1.0).finish(start, seconds, phase) == start + seconds


def test_a_pause_is_waited_out() -> None:
    shifts = Availability(period=10.0, on_fraction=0.5)
    assert shifts.finish(7.0, 1.0, phase=0.0) == 11.0  # away until 10
    assert shifts.finish(0.0, 5.0, phase=0.0) == 5.0  # ends with the window
    assert shifts.finish(7.0, 0.0, phase=0.0) == 7.0  # nothing to do needs nobody there
    assert shifts.finish(0.0, 1.0, phase=8.0) == 1.0  # the window opened at -2


def test_a_long_job_costs_no_loop() -> None:
    assert Availability(period=1.0, on_fraction=0.25).finish(0.0, 1e12, phase=0.0) == 4e12 - 0.75


@pytest.mark.parametrize(
    ("period", "on_fraction", "text"),
    [
        (0.0, 0.5, "availability.period is 0.0; it must be a finite number above zero"),
        (float("inf"), 0.5, "availability.period is inf"),
        (1.0, 0.0, "availability.on_fraction is 0.0; it must be above 0 (a client that is never present"),
        (1.0, 1.5, "availability.on_fraction is 1.5"),
    ],
)
def test_bad_windows_are_refused(period: float, on_fraction: float, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        Availability(period=period, on_fraction=on_fraction)
