"""Device shares are exact, deterministic and complete."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key
from asyncfed.delays import CPU_WATTS, GPU_WATTS, Device
from asyncfed.delays.devices import ClassBounds, class_of_joining, class_sizes, complete_classes
from asyncfed.delays.keyed_draws import client_units

SLOW_AND_FAST = (Device(name="slow", share=0.2), Device(name="fast", share=0.8))


def assigned_to(purpose: int) -> np.ndarray:
    return ClassBounds(SLOW_AND_FAST, 10, purpose).class_of_all(10)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.integers(1, 300), st.integers(0, 2**64 - 1))
def test_a_client_alone_is_told_its_class_as_if_all_were_sorted(
    parts: list[int], num_clients: int, purpose: int
) -> None:
    total = max(1, sum(parts))
    classes = complete_classes([Device(name=f"d{i}", share=part / total) for i, part in enumerate(parts)])
    order = np.argsort(client_units(purpose, num_clients), kind="stable")
    expected = np.empty(num_clients, np.intp)
    expected[order] = np.repeat(np.arange(len(classes)), class_sizes(classes, num_clients))
    bounds = ClassBounds(classes, num_clients, purpose)
    assert bounds.class_of_all(num_clients).tolist() == expected.tolist()
    assert [bounds.class_of(client) for client in range(num_clients)] == expected.tolist()


def test_shares_among_many_clients_are_exact_without_a_list_of_them() -> None:
    """More clients than a block of numbers holds, and than a window is wide."""
    num_clients, purpose = 100_003, purpose_key(3, "device")
    assigned = ClassBounds(SLOW_AND_FAST, num_clients, purpose).class_of_all(num_clients)
    assert np.bincount(assigned).tolist() == class_sizes(SLOW_AND_FAST, num_clients)


@pytest.mark.parametrize("seed", range(20))
def test_ten_clients_with_a_fifth_of_stragglers_have_exactly_two(seed: int) -> None:
    assigned = assigned_to(purpose_key(seed, "device"))
    assert np.bincount(assigned).tolist() == [2, 8]


def test_the_seed_decides_who_is_slow() -> None:
    slow = {tuple(np.flatnonzero(assigned_to(purpose_key(seed, "device")) == 0)) for seed in range(20)}
    assert len(slow) > 10
    assert {client for pair in slow for client in pair} == set(range(10))
    purpose = purpose_key(5, "device")
    assert np.array_equal(assigned_to(purpose), assigned_to(purpose))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 300))
def test_sizes_add_up_and_are_within_one_of_the_share(parts: list[int], num_clients: int) -> None:
    classes = complete_classes([Device(name=f"d{i}", share=part / sum(parts)) for i, part in enumerate(parts)])
    sizes = class_sizes(classes, num_clients)
    assert sum(sizes) == num_clients
    for device, size in zip(classes, sizes, strict=True):
        assert abs(size - device.share * num_clients) < 1.0 + 1e-6


def test_shares_without_an_exact_float_are_still_honest() -> None:
    classes = complete_classes([Device(name="a", share=0.29), Device(name="b", share=0.1)])
    assert class_sizes(classes, 100) == [29, 10, 61]
    assert len(complete_classes([Device(name=f"d{i}", share=0.1) for i in range(10)])) == 10


def test_clients_who_join_later_are_drawn_by_share() -> None:
    purpose = purpose_key(3, "device")
    drawn = [class_of_joining(SLOW_AND_FAST, client, purpose) for client in range(10, 10_010)]
    assert drawn.count(0) == pytest.approx(2_000, abs=200)
    assert set(drawn) == {0, 1}


def test_defaults_are_a_plain_processor() -> None:
    device = Device(name="laptop", share=1.0)
    assert (device.slowness, device.watts, device.dropout) == (1.0, CPU_WATTS, 0.0)
    assert (CPU_WATTS, GPU_WATTS) == (45.0, 125.0)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"name": ""}, "device.name is empty"),
        ({"share": 1.5}, "device phone: share is 1.5; it must be a number from 0 to 1"),
        ({"slowness": 0.0}, "device phone: slowness is 0.0; it must be a finite number above zero"),
        ({"watts": -1.0}, "device phone: watts is -1.0; it must be a finite number, zero or more"),
        ({"dropout": -0.1}, "device phone: dropout is -0.1; it must be a number from 0 to 1"),
    ],
)
def test_bad_devices_are_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Device(**{"name": "phone", "share": 0.5, **values})


def test_shares_above_one_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"add up to 1\.2; the limit is 1\. Lower"):
        complete_classes([Device(name="a", share=0.6), Device(name="b", share=0.6)])


def test_a_name_must_tell_one_class() -> None:
    with pytest.raises(ConfigError, match='two device classes are named "a"'):
        complete_classes([Device(name="a", share=0.5), Device(name="a", share=0.5)])
    with pytest.raises(ConfigError, match='two device classes are named "standard"'):
        complete_classes([Device(name="standard", share=0.5)])
