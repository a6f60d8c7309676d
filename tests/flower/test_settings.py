"""Flower's run configuration, and work fetched ahead."""

import tomllib

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.flower.new_app import write_app
from asyncfed.flower.settings import FlowerSettings, fetching_ahead, settings_of
from asyncfed.strategies import FedAvg
from asyncfed.strategies.samplers import ShortestQueue


def test_flat_keys_become_settings():
    told = settings_of({"wait-nodes": 3, "ttl": 60.0, "limits.largest-norm": 5.0, "my-own-key": "left alone"})
    assert (told.wait_nodes, told.ttl, told.limits.largest_norm) == (3, 60.0, 5.0)
    assert told.limits.ticket_seconds == 60.0  # a ticket lives as long as its message


def test_the_app_of_a_beginner_has_the_default_settings(tmp_path):
    write_app(tmp_path / "app", 3)
    config = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    config.pop("limits")
    assert settings_of(config) == settings_of({})
    assert {key.replace("-", "_") for key in config} == set(af.core.record.to_plain(FlowerSettings())) - {"limits"}


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"ttl": 0.0}, "ttl is 0.0; it must be positive"),
        ({"prefetch": 0}, "prefetch is 0; it must be positive"),
        ({"poll": "often"}, "The run configuration cannot be used: .*poll"),
        ({"limits.faults": 0}, "limits.faults is 0; it must be positive"),
        ({"limits.colour": 1}, "The run configuration cannot be used: .*colour"),
    ],
)
def test_settings_that_cannot_be_are_refused(config, complaint):
    with pytest.raises(ConfigError, match=complaint):
        settings_of(config)


def test_fetching_ahead_hands_out_more_tickets_to_the_shortest_queue(experiment):
    ahead = fetching_ahead(experiment, 2)
    assert ahead.strategy.concurrency == 6
    assert ahead.strategy.sampler == ShortestQueue(depth=2)
    assert fetching_ahead(experiment, 1) == experiment


def test_a_strategy_of_rounds_has_nothing_to_fetch_ahead(experiment):
    rounds = af.core.record.replace(experiment, strategy=FedAvg(cohort_size=2))
    with pytest.raises(ConfigError, match=r"prefetch is 2, but fedavg hands out work in rounds.*Set prefetch to 1"):
        fetching_ahead(rounds, 2)
