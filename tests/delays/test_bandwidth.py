"""Links with a speed: drawn once per client, set by device class, and nothing at all where they are left out."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key, unit
from asyncfed.core.record import UNSET, from_plain, to_json
from asyncfed.core.types import Budget, Work
from asyncfed.delays import (
    Constant,
    DelayModel,
    Delays,
    Device,
    Exponential,
    FunctionDelays,
    LimitsBandwidth,
    LogNormal,
    Pareto,
    Timing,
    Uniform,
    expected_durations,
)
from asyncfed.store.schema import LOST, REPORT
from asyncfed.strategies import FedBuff

DRAWN = Delays(
    bandwidth_down=LogNormal(median=1e6, sigma=1.0),
    bandwidth_up=Pareto(minimum=1e4, shape=2.0),
    devices=(Device(name="phone", share=0.4, bandwidth_up=500.0),),
)


# ---- seconds -------------------------------------------------------------------------------------------------------


def test_bytes_take_bytes_by_bandwidth() -> None:
    model = Delays(bandwidth_down=Constant(value=2e6), bandwidth_up=Constant(value=5e5)).bind(2, 0)
    assert model.limits_bandwidth
    assert [model.transfer_seconds(client, 8_000_000, 1_000_000) for client in (0, 1, 7)] == [(4.0, 2.0)] * 3
    assert model.transfer_seconds(0, 0, 0) == (0.0, 0.0)


def test_one_direction_alone_leaves_the_other_free() -> None:
    assert Delays(bandwidth_up=Constant(value=10.0)).bind(1, 0).transfer_seconds(0, 10**9, 50) == (0.0, 5.0)
    assert Delays(bandwidth_down=Constant(value=10.0)).bind(1, 0).transfer_seconds(0, 50, 10**9) == (5.0, 0.0)


def test_without_bandwidth_bytes_take_no_time() -> None:
    model = Delays(download=Exponential(mean=1.0), devices=(Device(name="a", share=0.5),)).bind(3, 0)
    assert not model.limits_bandwidth
    assert model.transfer_seconds(1, 10**12, 10**12) == (0.0, 0.0)


def test_each_client_draws_once_by_a_key_of_its_own() -> None:
    model = DRAWN.bind(10, seed=3)
    for client in (0, 4, 9, 10, 10**9):
        down, up = (unit(draw_key(purpose_key(3, f"bandwidth_{way}"), client, 0)) for way in ("down", "up"))
        speed_up = 500.0 if model.device_of(client) == "phone" else Pareto(minimum=1e4, shape=2.0).draw(up)
        expected = (1e6 / LogNormal(median=1e6, sigma=1.0).draw(down), 1e6 / speed_up)
        assert model.transfer_seconds(client, 10**6, 10**6) == expected
    seconds = [model.transfer_seconds(client, 10**6, 10**6) for client in range(10)]
    assert seconds == [DRAWN.bind(10, seed=3).transfer_seconds(client, 10**6, 10**6) for client in range(10)]
    assert len({down for down, _ in seconds}) == 10
    assert seconds[0] != DRAWN.bind(10, seed=4).transfer_seconds(0, 10**6, 10**6)


def test_a_device_class_replaces_the_draw_in_its_direction_only() -> None:
    model, plain = DRAWN.bind(10, seed=1), af.replace(DRAWN, devices=()).bind(10, seed=1)
    phones = [client for client in range(10) if model.device_of(client) == "phone"]
    assert len(phones) == 4
    for client in range(10):
        down, up = model.transfer_seconds(client, 1000, 1000)
        assert down == plain.transfer_seconds(client, 1000, 1000)[0]
        assert up == (2.0 if client in phones else plain.transfer_seconds(client, 1000, 1000)[1])


def test_a_device_class_alone_limits_its_clients() -> None:
    model = Delays(devices=(Device(name="phone", share=0.5, bandwidth_down=100.0),)).bind(4, 0)
    assert model.limits_bandwidth
    assert (
        sorted(model.transfer_seconds(client, 300, 300) for client in range(4)) == [(0.0, 0.0)] * 2 + [(3.0, 0.0)] * 2
    )
    later = {model.transfer_seconds(client, 300, 300) for client in range(4, 40)}
    assert later == {(0.0, 0.0), (3.0, 0.0)}


@given(st.integers(0, 10**13), st.integers(0, 10**13), st.integers(0, 20), st.integers(0, 2**32))
def test_more_bytes_never_take_less_time(some: int, others: int, client: int, seed: int) -> None:
    model = DRAWN.bind(8, seed)
    less, more = sorted((some, others))
    fast, slow = model.transfer_seconds(client, less, less), model.transfer_seconds(client, more, more)
    assert 0.0 <= fast[0] <= slow[0]
    assert 0.0 <= fast[1] <= slow[1]


def test_other_draws_do_not_change() -> None:
    varied = Delays(compute=Exponential(mean=1.0), slowness=Uniform(low=1.0, high=2.0), dropout=0.2)
    limited = af.replace(varied, bandwidth_down=Uniform(low=1.0, high=2.0))
    one, other = varied.bind(5, 0), limited.bind(5, 0)
    pairs = [(client, ticket) for client in range(7) for ticket in range(5)]
    assert [one.timing(*pair, Work(), 9) for pair in pairs] == [other.timing(*pair, Work(), 9) for pair in pairs]


def test_a_lost_ticket_is_given_up_when_its_bytes_would_have_come_too() -> None:
    delays = Delays(dropout=0.5, bandwidth_down=Constant(value=10.0), bandwidth_up=Constant(value=5.0))
    model = delays.bind(1, 0)
    timing = Timing(1.0, 2.0, 4.0, True).with_transfer(*model.transfer_seconds(0, 100, 100))
    assert timing == Timing(11.0, 2.0, 24.0, True)
    assert model.lost_after(0, 0, timing) == 37.0
    assert af.replace(delays, timeout=3.0).bind(1, 0).lost_after(0, 0, timing) == 3.0


def test_limiting_bandwidth_is_a_capability_that_a_model_need_not_have() -> None:
    assert isinstance(DRAWN.bind(1, 0), LimitsBandwidth)
    own = FunctionDelays(lambda client, ticket, work: 1.0).bind(1, 0)
    assert isinstance(own, DelayModel)
    assert not isinstance(own, LimitsBandwidth)


def test_a_simulated_ticket_takes_the_time_of_its_bytes_also_if_it_is_lost() -> None:
    phones = (Device(name="phone", share=0.5, bandwidth_up=4.0),)
    delays = Delays(dropout=0.2, bandwidth_down=Constant(value=8.0), devices=phones)
    strategy, budget = FedBuff(concurrency=4, buffer_size=2), Budget(updates=20)
    experiment = af.Experiment(num_clients=4, strategy=strategy, budget=budget, delays=delays)
    size = experiment.problem().num_params * 8
    model = delays.bind(4, experiment.seed)
    rows = [row for row in af.run(experiment, threads=1).journal.event_rows() if row.kind in (REPORT, LOST)]
    assert {row.kind for row in rows} == {REPORT, LOST}
    for row in rows:
        assert row.a == 1.0 + size / 8.0 + (size / 4.0 if model.device_of(row.client) == "phone" else 0.0)


# ---- means ---------------------------------------------------------------------------------------------------------


def test_means_count_the_bytes() -> None:
    delays = af.replace(DRAWN, download=Exponential(mean=0.5), upload=Constant(value=0.25))
    model = delays.bind(6, 2)
    means = expected_durations(delays, 6, 2, bytes_down=4000, bytes_up=2000)
    seconds = [model.transfer_seconds(client, 4000, 2000) for client in range(6)]
    assert means.download.tolist() == [0.5 + down for down, _ in seconds]
    assert means.upload.tolist() == [0.25 + up for _, up in seconds]
    assert expected_durations(delays, 6, 2).total.tolist() == [1.75] * 6


def test_means_estimated_from_draws_count_the_bytes_of_a_model_that_limits_bandwidth() -> None:
    class Own:
        may_lose = False

        def bind(self, num_clients: int, seed: int) -> DelayModel:
            return Delays(bandwidth_down=Constant(value=10.0)).bind(num_clients, seed)

    assert expected_durations(Own(), 2, 0, bytes_down=30, bytes_up=30).total.tolist() == [4.0, 4.0]
    function = FunctionDelays(lambda client, ticket, work: 1.0)
    assert expected_durations(function, 2, 0, bytes_down=30, bytes_up=30).total.tolist() == [1.0, 1.0]


# ---- written down --------------------------------------------------------------------------------------------------


def test_toml_round_trip() -> None:
    experiment = af.Experiment(delays=DRAWN)
    assert af.from_toml(af.to_toml(experiment)) == experiment
    text = """
        bandwidth_down = {kind = "constant", value = 1e6}
        [[devices]]
        name = "phone"
        share = 0.5
        bandwidth_up = 2000
    """
    assert from_plain(tomllib.loads(text), Delays) == Delays(
        bandwidth_down=Constant(value=1e6), devices=(Device(name="phone", share=0.5, bandwidth_up=2000.0),)
    )


def test_what_is_left_out_is_not_written_down() -> None:
    plain = Delays(compute=Exponential(mean=1.0), devices=(Device(name="phone", share=0.5),))
    assert (plain.bandwidth_down, plain.devices[0].bandwidth_up) == (UNSET, UNSET)
    assert "bandwidth" not in af.to_toml(af.Experiment(delays=plain))
    assert to_json(plain) == (
        '{"compute":{"kind":"exponential","mean":1.0},"per_sample":0.0,"slowness":{"kind":"constant","value":1.0},'
        '"download":{"kind":"constant","value":0.0},"upload":{"kind":"constant","value":0.0},'
        '"devices":[{"name":"phone","share":0.5,"slowness":1.0,"watts":45.0,"dropout":0.0}],"availability":null,'
        '"dropout":0.0,"timeout":null,"trace":null}'
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            {"bandwidth_down": Constant(value=0.0)},
            r"Constant\(value=0\.0\), whose least draw is 0\.0; every draw must be a finite number above zero\.",
        ),
        ({"bandwidth_up": LogNormal(median=1e-30, sigma=86.0)}, r"delays\.bandwidth_up is .* whose least draw is 0\.0"),
        ({"bandwidth_up": 1e6}, r"delays\.bandwidth_up is 1000000\.0; it must be a distribution.*Constant\(value="),
    ],
)
def test_bandwidths_that_are_not_positive_are_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Delays(**values)


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
@pytest.mark.parametrize("field", ["bandwidth_down", "bandwidth_up"])
def test_devices_without_a_positive_bandwidth_are_refused(field: str, value: float) -> None:
    message = rf"device phone: {field} is {value}; it must be a finite number above zero\. Leave it out for no limit"
    with pytest.raises(ConfigError, match=message):
        Device(name="phone", share=0.5, **{field: value})
