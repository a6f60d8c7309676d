"""Delays of one amount of local work, carried over to others in proportion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.types import Work
from asyncfed.delays import Constant, Delays, LimitsBandwidth, PerWork, heavy_tailed
from asyncfed.testing import check_delay


@given(measured=st.integers(1, 50), epochs=st.integers(1, 50), client=st.integers(0, 4), ticket=st.integers(0, 99))
def test_computing_is_in_proportion_to_the_epochs(measured, epochs, client, ticket):
    inner = heavy_tailed()
    timing = PerWork(delays=inner, epochs=measured).bind(5, 3).timing(client, ticket, Work(epochs=epochs), 64)
    as_measured = inner.bind(5, 3).timing(client, ticket, Work(epochs=measured), 64)
    assert timing.compute == pytest.approx(as_measured.compute * epochs / measured)


def test_work_in_steps_counts_as_the_part_of_a_pass_that_it_is():
    model = PerWork(delays=Delays(upload=Constant(value=0.5)), epochs=2).bind(1, 0)
    timing = model.timing(0, 0, Work(steps=3, batch_size=10), 60)
    assert (timing.compute, timing.upload) == (0.25, 0.5)


def test_delays_that_charge_for_the_work_themselves_stay_as_they_are():
    inner = Delays(per_sample=0.01)
    work = Work(epochs=3)
    outer = PerWork(delays=inner, epochs=2).bind(2, 0).timing(1, 5, work, 80)
    assert outer.compute == pytest.approx(inner.bind(2, 0).timing(1, 5, work, 80).compute)


def test_bandwidth_power_and_losses_are_those_of_the_delays_inside():
    inner = Delays(bandwidth_up=Constant(value=100.0), dropout=0.5, timeout=7.0)
    delays = PerWork(delays=inner)
    model = delays.bind(3, 0)
    assert isinstance(model, LimitsBandwidth)
    assert model.limits_bandwidth
    assert model.transfer_seconds(0, 50, 50) == (0.0, 0.5)
    assert delays.may_lose
    assert model.lost_after(0, 0, model.timing(0, 0, Work(), 1)) == 7.0
    assert not PerWork(delays=Delays()).bind(3, 0).limits_bandwidth


def test_it_passes_the_conformance_checks_and_is_written_as_toml():
    delays = PerWork(delays=heavy_tailed(), epochs=5)
    check_delay(delays)
    experiment = af.Experiment(delays=delays)
    assert af.from_toml(af.to_toml(experiment)) == experiment


@given(measured=st.integers(1, 50), steps=st.integers(1, 50), rows=st.integers(1, 500))
def test_delays_of_so_many_steps_are_in_proportion_to_the_steps(measured, steps, rows):
    model = PerWork(delays=Delays(), steps=measured).bind(1, 0)
    assert model.timing(0, 0, Work(steps=steps), rows).compute == pytest.approx(steps / measured)
    epochs = model.timing(0, 0, Work(epochs=2, batch_size=10), rows).compute
    assert epochs == pytest.approx(2 * -(-rows // 10) / measured)


def test_no_steps_are_refused():
    with pytest.raises(af.errors.ConfigError, match=r"delays\.steps is 0; it must be at least 1"):
        PerWork(delays=Delays(), steps=0)


def test_no_epochs_are_refused():
    with pytest.raises(af.errors.ConfigError, match=r"delays\.epochs is 0; it must be at least 1"):
        PerWork(delays=Delays(), epochs=0)
