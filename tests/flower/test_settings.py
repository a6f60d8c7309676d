"""Flower's run configuration, and work fetched ahead."""

import tomllib

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.flower.new_app import write_app
from asyncfed.flower.settings import FlowerSettings, read_settings, with_prefetch
from asyncfed.strategies import BoundedStaleness, FedAsync, FedAvg
from asyncfed.strategies.samplers import ShortestQueue
from asyncfed.uplinks import ErrorFeedback


def test_flat_keys_become_settings():
    settings = read_settings({"wait-nodes": 3, "ttl": 60.0, "limits.largest-norm": 5.0, "my-own-key": "left alone"})
    assert (settings.wait_nodes, settings.ttl, settings.limits.largest_norm) == (3, 60.0, 5.0)
    assert settings.limits.ticket_seconds == 60.0  # a ticket lives as long as its message


def test_time_outs_grow_with_the_model_and_a_ticket_lives_as_long_as_its_message():
    settings = read_settings({"ttl": 60.0, "least-bandwidth": 1e6})
    small, large = settings.with_model(88), settings.with_model(400_000_000)
    assert small.ttl == pytest.approx(60.0, abs=1e-3)
    assert large.ttl == large.limits.ticket_seconds == 60.0 + 3 * 400.0  # down, beside it, up


def test_the_app_of_a_beginner_has_the_default_settings_and_is_robust(tmp_path):
    write_app(tmp_path / "app", 3)
    config = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    config.pop("limits")
    assert read_settings(config) == read_settings({"robust": True})
    assert {key.replace("-", "_") for key in config} == set(af.core.record.to_plain(FlowerSettings())) - {"limits"}


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"ttl": 0.0}, "ttl is 0.0; it must be positive"),
        ({"least-bandwidth": 0.0}, "least_bandwidth is 0.0; it must be positive"),
        ({"prefetch": 0}, "prefetch is 0; it must be positive"),
        ({"poll": "often"}, "The run configuration cannot be used: .*poll"),
        ({"limits.faults": 0}, "limits.faults is 0; it must be positive"),
        ({"limits.colour": 1}, "The run configuration cannot be used: .*colour"),
    ],
)
def test_settings_that_cannot_be_are_refused(config, complaint):
    with pytest.raises(ConfigError, match=complaint):
        read_settings(config)


def test_prefetching_dispatches_more_tickets_to_the_shortest_queue(experiment):
    ahead = with_prefetch(experiment, 2)
    assert ahead.strategy.concurrency == 6
    assert ahead.strategy.sampler == ShortestQueue(depth=2)
    assert with_prefetch(experiment, 1) == experiment


def test_a_strategy_of_rounds_has_nothing_to_fetch_ahead(experiment):
    rounds = af.core.record.replace(experiment, strategy=FedAvg(cohort_size=2))
    with pytest.raises(ConfigError, match=r"prefetch is 2, but fedavg dispatches work in rounds.*Set prefetch to 1"):
        with_prefetch(rounds, 2)


def test_of_a_strategy_around_another_the_inner_one_fetches_ahead(experiment):
    bounded = BoundedStaleness(strategy=FedAsync(concurrency=3), max_staleness=4)
    ahead = with_prefetch(af.core.record.replace(experiment, strategy=bounded), 2).strategy
    assert ahead.strategy.concurrency == 6
    assert ahead.strategy.sampler == ShortestQueue(depth=2)
    assert ahead.max_staleness == 4


def test_clients_that_remember_fetch_nothing_ahead(experiment):
    work = Work(uplink=(ErrorFeedback(),))
    remembering = af.core.record.replace(experiment, strategy=FedAsync(concurrency=3, work=work))
    with pytest.raises(ConfigError, match=r"prefetch is 2, but clients remember something.*Set prefetch to 1"):
        with_prefetch(remembering, 2)
