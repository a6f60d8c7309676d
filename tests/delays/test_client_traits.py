"""What clients keep for a run: the same for clients known at the start and for those that join later."""

from math import inf

import numpy as np
import pytest

from asyncfed.core.record import UNSET
from asyncfed.delays import Availability, Constant, Device, LogNormal, availability, client_traits
from asyncfed.delays.availability import phase_trait
from asyncfed.delays.client_traits import bandwidth_trait, device_trait, shared_trait, slowness_trait

PHONES = (Device(name="phone", share=0.25, slowness=4.0),)


def test_devices_have_exact_shares_among_the_known_and_drawn_ones_among_later_clients():
    trait = device_trait(PHONES, 40, seed=3)
    assert [device.name for device in trait.known].count("phone") == 10
    later = [trait.of(client).name for client in range(40, 2040)]
    assert later.count("phone") / 2000 == pytest.approx(0.25, abs=0.03)


def test_slowness_multiplies_the_clients_draw_and_its_devices_factor():
    device = device_trait(PHONES, 8, seed=0)
    constant = slowness_trait(Constant(value=2.0), device, 8, seed=0)
    assert constant.known == [2.0 * d.slowness for d in device.known]
    drawn = slowness_trait(LogNormal(median=1.0, sigma=0.5), device, 8, seed=0)
    assert len(set(drawn.known)) == 8


def test_a_client_that_joins_later_has_what_it_would_have_had_from_the_start():
    few, many = (
        slowness_trait(LogNormal(median=1.0, sigma=1.0), device_trait((), count, seed=1), count, seed=1)
        for count in (3, 6)
    )
    assert [few.of(client) for client in range(6)] == many.known
    few, many = (
        bandwidth_trait("up", LogNormal(median=1.0, sigma=1.0), device_trait((), count, seed=1), seed=1)
        for count in (3, 6)
    )
    assert [few.of(client) for client in range(6)] == many.known
    windows = Availability(period=10.0, on_fraction=0.5)
    few, many = (phase_trait(windows, count, seed=1) for count in (3, 6))
    assert [few.of(client) for client in range(6)] == many.known


def test_bandwidth_is_the_devices_or_else_the_clients_draw_or_else_unlimited():
    device = device_trait((Device(name="phone", share=0.5, bandwidth_down=7.0),), 6, seed=0)
    phones = [d.name == "phone" for d in device.known]
    drawn = bandwidth_trait("down", LogNormal(median=1.0, sigma=0.5), device, seed=0).known
    assert [speed == 7.0 for speed in drawn] == phones
    assert bandwidth_trait("down", UNSET, device, seed=0).known == [7.0 if phone else inf for phone in phones]
    assert bandwidth_trait("up", Constant(value=3), device, seed=0).known == [3.0] * 6
    up = bandwidth_trait("up", LogNormal(median=1.0, sigma=0.5), device, seed=0).known
    assert len({*drawn, *up}) == 3 + 1 + 6


def test_phases_are_spread_over_the_period_or_all_zero():
    phases = np.array(phase_trait(Availability(period=10.0, on_fraction=0.5), 1000, seed=0).known)
    assert 0.0 <= phases.min() < 0.5
    assert 9.5 < phases.max() < 10.0
    together = phase_trait(Availability(period=10.0, on_fraction=0.5, random_phase=False), 3, seed=0)
    assert [together.of(client) for client in range(5)] == [0.0] * 5


def test_traits_of_very_many_clients_are_those_of_a_list(monkeypatch):
    devices = (Device(name="phone", share=0.3, slowness=4.0, bandwidth_down=7.0),)
    slowness = LogNormal(median=1.0, sigma=0.5)

    def traits():
        device = device_trait(devices, 500, seed=2)
        window = Availability(period=10.0, on_fraction=0.5)
        return [
            device,
            slowness_trait(slowness, device, 500, seed=2),
            slowness_trait(Constant(value=2.0), device, 500, seed=2),
            bandwidth_trait("down", slowness, device, seed=2),
            phase_trait(window, 500, seed=2),
            shared_trait(1.5, 500),
        ]

    listed = traits()
    monkeypatch.setattr(client_traits, "MOST_LISTED", 100)
    monkeypatch.setattr(availability, "MOST_LISTED", 100)
    computed = traits()
    for one, other in zip(listed, computed, strict=True):
        assert isinstance(one.known, list)
        assert not isinstance(other.known, list)
        assert one.known == list(other.known) == [other.of(client) for client in range(500)]
        assert one.of(501) == other.of(501)
        with pytest.raises(IndexError):
            other.known[500]
