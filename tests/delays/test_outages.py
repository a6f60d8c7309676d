"""A link that drops delays what is done, not what is being done."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.delays import (
    Constant,
    Delays,
    Exponential,
    Outages,
    Sites,
    Uniform,
    estimate_durations,
    expected_durations,
)
from asyncfed.testing import check_delay


def test_a_result_waits_for_the_end_of_the_outage_in_which_it_is_done() -> None:
    link = Outages(every=100.0, lasting=Constant(value=10.0)).bind(num_clients=1, seed=0)
    begin, end = link.outage(0, 3)
    assert 300.0 <= begin < 400.0
    assert end == begin + 10.0
    assert link.finish(0, begin - 50.0, 49.0) == begin - 1.0
    assert link.finish(0, begin - 50.0, 51.0) == end
    assert link.finish(0, begin - 50.0, 70.0) == begin + 20.0  # the link was away in between, and nobody noticed


def test_an_outage_that_runs_into_the_next_is_waited_for_too() -> None:
    link = Outages(every=10.0, lasting=Constant(value=10.0)).bind(num_clients=1, seed=0)
    away = [link.outage(0, slot) for slot in range(-1, 150)]
    for moment in np.linspace(0, 900, 61):
        expected = float(moment)
        while ends := [end for begin, end in away if begin <= expected < end]:
            expected = max(ends)
        assert link.finish(0, float(moment), 0.0) == expected


@given(
    st.integers(0, 5),
    st.tuples(st.floats(0, 1e5), st.floats(0, 1e5)),
    st.tuples(st.floats(0, 1e4), st.floats(0, 1e4)),
)
def test_later_or_more_work_never_ends_earlier(
    client: int, starts: tuple[float, float], amounts: tuple[float, float]
) -> None:
    link = Outages(every=500.0, lasting=Exponential(mean=200.0)).bind(num_clients=6, seed=2)
    (early, late), (less, more) = sorted(starts), sorted(amounts)
    assert link.finish(client, early, less) >= early + less
    assert link.finish(client, early, less) <= link.finish(client, late, less)
    assert link.finish(client, early, less) <= link.finish(client, early, more)


def test_the_mean_wait_has_a_formula() -> None:
    described = Outages(every=1000.0, lasting=Uniform(low=0.0, high=120.0))
    link = described.bind(num_clients=1, seed=0)
    waits = [link.finish(0, moment, 0.0) - moment for moment in np.arange(0.0, 1e6, 197.0).tolist()]
    means = expected_durations(Delays(compute=Constant(value=5.0), availability=described), 1, seed=0)
    assert means.compute[0] == pytest.approx(5.0 + 120.0**2 / 3 / 2000.0, rel=1e-3)
    assert np.mean(waits) == pytest.approx(means.compute[0] - 5.0, rel=0.2)


def test_there_are_no_outages_at_the_end_of_time() -> None:
    link = Outages(every=0.5, lasting=Constant(value=1.0)).bind(num_clients=1, seed=0)
    assert link.finish(0, 1e300, 1e290) == 1e300 + 1e290
    assert link.finish(0, 4e11, 1.0) < 5e11


def test_it_passes_the_check_of_delays() -> None:
    check_delay(Delays(availability=Outages(every=50.0, lasting=Exponential(mean=5.0))))


def test_a_slot_has_some_length() -> None:
    with pytest.raises(ConfigError, match=r"outages\.every is 0\.0"):
        Outages(every=0.0)


def test_sites_repeat() -> None:
    delays = Delays(variation=Sites(slowness=(3.0, 1.0, 2.0)))
    assert expected_durations(delays, 5, seed=9).compute.tolist() == [3.0, 1.0, 2.0, 3.0, 1.0]
    assert estimate_durations(delays.bind(5, seed=9), 5, tickets=2).compute.tolist() == [3.0, 1.0, 2.0, 3.0, 1.0]
    with pytest.raises(ConfigError, match="at least one site"):
        Sites(slowness=())
    with pytest.raises(ConfigError, match=r"sites\.slowness\[1\] is 0\.0"):
        Sites(slowness=(1.0, 0.0))
