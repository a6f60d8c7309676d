"""Delays: every draw depends on (seed, client, ticket) alone, and the parts add up as the equation says."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import ValidationError, from_plain, to_plain
from asyncfed.core.types import Work
from asyncfed.delays import (
    CPU_WATTS,
    Availability,
    Constant,
    DelayModel,
    Delays,
    Device,
    Exponential,
    LogNormal,
    Pareto,
    ShiftedExponential,
    Timing,
    Uniform,
)

EVERYTHING = Delays(
    compute=LogNormal(median=1.0, sigma=0.5),
    per_sample=0.01,
    slowness=Uniform(low=1.0, high=3.0),
    download=Exponential(mean=0.2),
    upload=ShiftedExponential(shift=0.1, mean=0.3),
    devices=(Device(name="phone", share=0.3, slowness=4.0, watts=3.0, dropout=0.2),),
    availability=Availability(period=100.0, on_fraction=0.5),
    dropout=0.1,
    timeout=30.0,
)

WORK = Work()


@settings(max_examples=30)
@given(st.permutations([(client, ticket) for client in (0, 3, 12) for ticket in (0, 1, 9)]), st.integers(0, 2**32))
def test_a_timing_does_not_depend_on_earlier_calls(calls: list[tuple[int, int]], seed: int) -> None:
    model = EVERYTHING.bind(num_clients=10, seed=seed)
    in_this_order = {pair: model.timing(*pair, WORK, 50) for pair in calls}
    for client, ticket in calls:
        assert EVERYTHING.bind(10, seed).timing(client, ticket, WORK, 50) == in_this_order[client, ticket]


def test_seed_client_ticket_and_part_each_change_the_draw() -> None:
    delays = Delays(compute=Exponential(mean=1.0), download=Exponential(mean=1.0), upload=Exponential(mean=1.0))
    drawn = []
    for seed in range(5):
        model = delays.bind(8, seed)
        for timing in (model.timing(client, ticket, WORK, 1) for client in range(8) for ticket in range(8)):
            drawn += [timing.download, timing.compute, timing.upload]
    assert len(set(drawn)) == len(drawn) == 5 * 8 * 8 * 3


def test_tickets_are_independent_and_follow_their_distribution() -> None:
    model = Delays(compute=Exponential(mean=2.0)).bind(4, seed=11)
    seconds = np.array([model.timing(1, ticket, WORK, 1).compute for ticket in range(20_000)])
    assert seconds.mean() == pytest.approx(2.0, rel=0.04)
    assert np.mean(seconds > 4.0) == pytest.approx(np.exp(-2.0), abs=0.012)
    assert abs(np.corrcoef(seconds[:-1], seconds[1:])[0, 1]) < 0.03
    other = np.array([model.timing(2, ticket, WORK, 1).compute for ticket in range(20_000)])
    assert abs(np.corrcoef(seconds, other)[0, 1]) < 0.03


def test_compute_is_the_product_the_docstring_states() -> None:
    slow = (Device(name="slow", share=1.0, slowness=5.0),)
    plain = Delays(compute=Constant(value=2.0), slowness=Constant(value=3.0), devices=slow)
    assert plain.bind(2, 0).timing(0, 0, Work(epochs=7), 11).compute == 30.0
    per_sample = Delays(compute=Constant(value=2.0), slowness=Constant(value=3.0), devices=slow, per_sample=0.5)
    assert per_sample.bind(2, 0).timing(0, 0, Work(epochs=7), 11).compute == 30.0 * 0.5 * 7 * 11


def test_work_counts_per_sample_even_if_all_else_is_constant() -> None:
    model = Delays(per_sample=0.5).bind(2, 0)
    assert [model.timing(0, 0, Work(epochs=epochs), 10).compute for epochs in (1, 3)] == [5.0, 15.0]


def test_compute_is_one_pass_for_work_with_steps() -> None:
    work = Work(epochs=5, batch_size=4, steps=9)
    for delays in (Delays(compute=Constant(value=2.0)), Delays(compute=Constant(value=2.0), dropout=0.5)):
        model = delays.bind(2, 0)
        assert [model.timing(0, 0, work, rows).compute for rows in (4, 10, 12, 0)] == [18.0, 6.0, 6.0, 0.0]
        assert model.timing(0, 0, Work(epochs=5, batch_size=4), 10).compute == 2.0


def test_per_sample_counts_the_rows_that_the_steps_go_through() -> None:
    model = Delays(compute=Constant(value=2.0), per_sample=0.5).bind(2, 0)
    assert model.timing(0, 0, Work(batch_size=4, steps=9), 10).compute == 2.0 * 0.5 * 3.0 * 10
    assert model.timing(0, 0, Work(batch_size=4, steps=9), 8).compute == 0.5 * 2.0 * 9 * 4


def test_constant_slowness_counts_without_devices_too() -> None:
    model = Delays(compute=Constant(value=2), slowness=Constant(value=3), upload=Constant(value=1)).bind(2, 0)
    timing = model.timing(1, 5, WORK, 1)
    assert timing == Timing(0.0, 6.0, 1.0, False)
    assert {type(part) for part in (timing.download, timing.compute, timing.upload)} == {float}


def test_slowness_is_drawn_once_per_client() -> None:
    model = Delays(slowness=Pareto(minimum=1.0, shape=2.0)).bind(50, seed=4)
    per_client = [{model.timing(client, ticket, WORK, 1).compute for ticket in range(5)} for client in range(60)]
    assert all(len(seconds) == 1 for seconds in per_client)
    assert len(set.union(*per_client)) == 60


def test_a_client_that_joins_is_what_it_would_have_been_from_the_start() -> None:
    delays = Delays(
        slowness=Pareto(minimum=1.0, shape=2.0),
        compute=Exponential(mean=1.0),
        availability=Availability(period=10.0, on_fraction=0.3),
    )
    few, many = delays.bind(5, seed=2), delays.bind(500, seed=2)
    assert few.timing(400, 7, WORK, 1) == many.timing(400, 7, WORK, 1)
    assert few.finish_compute(400, 3.0, 8.0) == many.finish_compute(400, 3.0, 8.0)
    assert few.timing(10**9, 7, WORK, 1).compute > 0.0


def test_device_shares_are_exact_for_ten_clients_and_later_ones_have_a_class_too() -> None:
    model = EVERYTHING.bind(10, seed=1)
    names = [model.device_of(client) for client in range(10)]
    assert (names.count("phone"), names.count("standard")) == (3, 7)
    assert {model.device_of(client) for client in range(10, 60)} == {"phone", "standard"}
    phone, standard = names.index("phone"), names.index("standard")
    assert (model.watts(phone), model.watts(standard)) == (3.0, CPU_WATTS)


def test_tickets_are_lost_as_often_as_stated() -> None:
    devices = (Device(name="shaky", share=0.5, dropout=0.5),)
    model = Delays(dropout=0.2, devices=devices).bind(10, seed=3)
    for client in range(10):
        expected = 0.6 if model.device_of(client) == "shaky" else 0.2
        lost = np.mean([model.timing(client, ticket, WORK, 1).lost for ticket in range(4_000)])
        assert lost == pytest.approx(expected, abs=0.04)


def test_nothing_is_lost_without_dropout_and_all_is_with_a_device_that_never_answers() -> None:
    assert not any(Delays(compute=Exponential(mean=1.0)).bind(3, 0).timing(1, t, WORK, 1).lost for t in range(500))
    dead = Delays(devices=(Device(name="dead", share=1.0, dropout=1.0),)).bind(3, 0)
    assert all(dead.timing(1, ticket, WORK, 1).lost for ticket in range(500))


def test_a_lost_ticket_is_given_up_at_the_timeout_or_when_it_would_have_come() -> None:
    timing = Timing(1.0, 2.0, 4.0, True)
    assert Delays(dropout=0.5, timeout=30.0).bind(2, 0).lost_after(0, 0, timing) == 30.0
    assert Delays(dropout=0.5).bind(2, 0).lost_after(0, 0, timing) == 7.0


def test_absence_stretches_the_work() -> None:
    together = Delays(availability=Availability(period=10.0, on_fraction=0.5, random_phase=False)).bind(3, 0)
    assert [together.finish_compute(client, 4.0, 3.0) for client in range(3)] == [12.0, 12.0, 12.0]
    apart = Delays(availability=Availability(period=10.0, on_fraction=0.5)).bind(30, 0)
    ends = [apart.finish_compute(client, 4.0, 3.0) for client in range(30)]
    assert len(set(ends)) > 10
    assert all(7.0 <= end <= 12.0 for end in ends)
    assert Delays().bind(3, 0).finish_compute(0, 4.0, 3.0) == 7.0


def test_phases_spread_over_the_whole_period() -> None:
    model = Delays(availability=Availability(period=10.0, on_fraction=0.25)).bind(4_000, seed=6)
    here = np.mean([model.finish_compute(client, 0.0, 1e-9) == 1e-9 for client in range(4_000)])
    assert here == pytest.approx(0.25, abs=0.03)


def test_a_trace_replaces_compute_and_slowness_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("client,seconds\n0,1.5\n0,2.5\n1,4\n")
    model = Delays(trace=str(path), slowness=Constant(value=2.0), upload=Constant(value=0.5)).bind(3, 0)
    own = [model.timing(0, ticket, WORK, 1) for ticket in range(30)]
    assert set(own) == {Timing(0.0, 3.0, 0.5, False), Timing(0.0, 5.0, 0.5, False)}
    assert {model.timing(2, ticket, WORK, 1).compute for ticket in range(30)} == {3.0, 5.0, 8.0}


def test_a_trace_is_drawn_anew_under_another_seed(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("client,seconds\n0,1\n0,2\n0,3\n")
    runs = {tuple(Delays(trace=str(path)).bind(1, s).timing(0, t, WORK, 1) for t in range(20)) for s in range(3)}
    assert len(runs) == 3


def test_every_bound_model_is_a_delay_model() -> None:
    model: DelayModel = EVERYTHING.bind(3, 0)
    assert model.watts(0) in (3.0, CPU_WATTS)


def test_json_round_trip() -> None:
    assert from_plain(json.loads(json.dumps(to_plain(EVERYTHING))), Delays) == EVERYTHING
    assert from_plain(json.loads(json.dumps(to_plain(Delays()))), Delays) == Delays()


def test_toml_is_the_written_form() -> None:
    text = """
        compute = {kind = "pareto", minimum = 1, shape = 1.5}
        upload = {kind = "constant", value = 2}
        dropout = 0.1
        availability = {period = 60.0, on_fraction = 0.5}
        [[devices]]
        name = "phone"
        share = 0.2
        slowness = 3.0
    """
    assert from_plain(tomllib.loads(text), Delays) == Delays(
        compute=Pareto(minimum=1.0, shape=1.5),
        upload=Constant(value=2.0),
        dropout=0.1,
        availability=Availability(period=60.0, on_fraction=0.5),
        devices=(Device(name="phone", share=0.2, slowness=3.0),),
    )


def test_a_wrong_value_in_a_text_is_named_by_its_path() -> None:
    with pytest.raises(ValidationError, match=r"pareto\.shape is -1\.0.* at `\$\.compute`"):
        from_plain({"compute": {"kind": "pareto", "minimum": 1.0, "shape": -1.0}}, Delays)
    with pytest.raises(ValidationError, match="unknown field `jitter`"):
        from_plain({"jitter": 1.0}, Delays)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"per_sample": -1.0}, r"delays\.per_sample is -1\.0; it must be a finite number, zero or more"),
        ({"dropout": 1.5}, r"delays\.dropout is 1\.5; it must be a number from 0 to 1"),
        ({"dropout": 1.0}, r"delays\.dropout is 1; no ticket would ever come back\. It must be below 1"),
        ({"timeout": 0.0}, r"delays\.timeout is 0\.0; it must be a finite number above zero\. Leave it out"),
        ({"trace": "t.csv", "per_sample": 0.1}, r"delays\.trace is 't\.csv', which replaces .* Remove it or the trace"),
        ({"trace": "t.csv", "compute": Constant(value=2.0)}, r"delays\.trace is 't\.csv'"),
        ({"devices": (Device(name="a", share=0.9), Device(name="b", share=0.9))}, "add up to 1.8; the limit is 1"),
    ],
)
def test_bad_delays_are_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Delays(**values)


def test_a_run_needs_a_client() -> None:
    with pytest.raises(ConfigError, match="bound to 0 clients; a run needs at least 1"):
        Delays().bind(0, 0)
