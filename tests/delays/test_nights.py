"""Phones are there at night, by their own clock, and work pauses in between."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError, DelayError
from asyncfed.delays import Constant, Delays, Nights, expected_durations
from asyncfed.testing import check_delay

HOUR = 3600.0
PUNCTUAL: dict[str, Any] = {"jitter": 0.0, "habit": 0.0, "skipped": 0.0}


def test_hours_are_local() -> None:
    """From 22 to 6 in New York is from 3 to 11 UTC."""
    nights = Nights(begins=22.0, hours=8.0, zones=(-5.0,), **PUNCTUAL).bind(num_clients=1, seed=0)
    assert nights.finish(0, 0.0, HOUR) == 4 * HOUR
    assert nights.finish(0, 4 * HOUR, HOUR) == 5 * HOUR
    assert nights.finish(0, 10.5 * HOUR, HOUR) == (24 + 3.5) * HOUR  # half an hour today, half an hour tomorrow
    assert nights.finish(0, 12 * HOUR, 17 * HOUR) == (24 * 3 + 4) * HOUR  # two nights, and an hour of the third
    assert nights.finish(0, 12 * HOUR, 0.0) == 12 * HOUR


def test_a_run_may_begin_at_another_hour() -> None:
    at_noon = Nights(begins=22.0, hours=8.0, starts_at=12.0, **PUNCTUAL).bind(num_clients=1, seed=0)
    assert at_noon.finish(0, 0.0, HOUR) == 11 * HOUR


def test_zones_are_drawn_and_kept() -> None:
    nights = Nights(begins=0.0, hours=1.0, zones=(0.0, -6.0), **PUNCTUAL).bind(num_clients=300, seed=1)
    begins = [nights.night(client, 0)[0] / HOUR for client in range(300)]
    assert set(begins) == {0.0, 6.0}
    assert begins.count(0.0) == pytest.approx(150, abs=40)
    assert begins == [nights.night(client, 3)[0] / HOUR - 72 for client in range(300)]


@given(
    st.integers(0, 5),
    st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)),
    st.tuples(st.floats(0, 2e5), st.floats(0, 2e5)),
)
def test_later_or_more_work_never_ends_earlier(
    client: int, starts: tuple[float, float], amounts: tuple[float, float]
) -> None:
    nights = Nights(zones=(-8.0, 0.0, 9.0)).bind(num_clients=6, seed=2)
    (early, late), (less, more) = sorted(starts), sorted(amounts)
    assert nights.finish(client, early, less) >= early + less
    assert nights.finish(client, early, less) <= nights.finish(client, late, less) * (1 + 1e-12)
    assert nights.finish(client, early, less) <= nights.finish(client, early, more) * (1 + 1e-12)


@given(st.floats(0, 1e6), st.floats(0, 5e4), st.floats(0, 5e4))
def test_work_in_two_parts_ends_when_work_in_one_does(start: float, first: float, second: float) -> None:
    nights = Nights(zones=(3.0,)).bind(num_clients=1, seed=2)
    between = nights.finish(0, start, first)
    assert nights.finish(0, between, second) == pytest.approx(nights.finish(0, start, first + second), abs=1e-5)


def test_the_time_present_is_what_the_mean_says() -> None:
    described = Nights(hours=6.0, skipped=0.25)
    nights = described.bind(num_clients=20, seed=0)
    present = np.mean([np.ptp(nights.night(client, day)) for client in range(20) for day in range(60)])
    assert present == pytest.approx(6.0 * 0.75 * HOUR, rel=0.05)
    means = expected_durations(Delays(compute=Constant(value=60.0), availability=described), 2, seed=0)
    assert means.compute == pytest.approx([60.0 * 24 / 4.5] * 2)


def test_work_without_end_is_refused() -> None:
    nights = Nights().bind(num_clients=1, seed=0)
    assert nights.finish(0, 0.0, 1e7) > 1e7
    with pytest.raises(DelayError, match=r"client 0 is to work for 1e.300 s from second 0 on, in its nights"):
        nights.finish(0, 0.0, 1e300)
    with pytest.raises(DelayError, match=r"from second 1e.20 on"):
        nights.finish(0, 1e20, 1.0)


def test_it_passes_the_check_of_delays() -> None:
    check_delay(Delays(availability=Nights(zones=(-5.0, 8.0))))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"begins": 24.0}, "nights.begins is 24.0; it must be an hour from 0 to below 24"),
        ({"hours": 0.0}, "nights.hours is 0.0"),
        ({"hours": 20.0, "jitter": 2.0}, "hours + 3 * jitter at most 24"),
        ({"hours": 1.0, "jitter": 2.0}, "jitter must be at most hours"),
        ({"habit": 13.0}, "nights.habit is 13.0"),
        ({"skipped": 1.0}, "else a client is never present"),
        ({"zones": ()}, "nights.zones is empty"),
        ({"zones": (0.0, 15.0)}, "nights.zones has 15.0"),
        ({"starts_at": -1.0}, "nights.starts_at is -1.0"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        Nights(**settings)
