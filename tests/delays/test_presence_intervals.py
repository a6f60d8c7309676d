"""Intervals that repeat: work is done while the device is there, and the formula agrees with watching the clock."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError, DelayError
from asyncfed.delays.presence_intervals import PresenceIntervals, RecordedPresence

PERIOD = 20
quarters = st.integers(0, 160).map(lambda n: n / 4)
pairs = st.lists(
    st.tuples(st.integers(0, PERIOD), st.integers(0, PERIOD)).map(sorted).map(tuple), min_size=1, max_size=5
)


def watched(intervals: list[tuple[int, int]], start: float, seconds: float) -> float:
    """The same by looking, every quarter of a second, whether the device is there."""
    left, now = Fraction(seconds), Fraction(start)
    while left > 0:
        if any(begin <= now % PERIOD < end for begin, end in intervals):
            left -= Fraction(1, 4)
        now += Fraction(1, 4)
    return float(now)


@given(pairs.filter(lambda found: any(end > begin for begin, end in found)), quarters, quarters)
def test_finish_equals_watching_the_clock(intervals: list[tuple[int, int]], start: float, seconds: float) -> None:
    device = PresenceIntervals(intervals, PERIOD)
    assert device.finish(start, seconds) == watched(intervals, start, seconds)


def test_work_without_end_is_refused() -> None:
    device = PresenceIntervals([(0.0, 1e-6)], 10.0)
    assert device.finish(0.0, 1.0) == pytest.approx(1e7, rel=1e-3)
    with pytest.raises(DelayError, match=r"is to work for 1e.300 s"):
        device.finish(0.0, 1e300)


def test_the_share_counts_overlaps_once() -> None:
    assert PresenceIntervals([(0.0, 4.0), (2.0, 6.0), (6.0, 8.0), (9.0, 9.0)], 16.0).share == 0.5


def test_devices_repeat_and_those_that_are_never_there_are_left_out() -> None:
    never, half, tenth = (PresenceIntervals([(0.0, end)], 10.0) for end in (0.0, 5.0, 1.0))
    presence = RecordedPresence("file", [half, never, tenth])
    assert [presence.finish(client, 6.0, 1.0) for client in range(4)] == [11.0, 11.0, 11.0, 11.0]
    assert [presence.finish(client, 6.0, 2.0) for client in range(4)] == [12.0, 21.0, 12.0, 21.0]
    assert presence.mean_seconds(np.ones(3)).tolist() == [2.0, 10.0, 2.0]
    with pytest.raises(ConfigError, match="file has no device that is ever present"):
        RecordedPresence("file", [never])
