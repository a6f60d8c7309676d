"""A population as data: what it refuses, and its rows written out."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.data import DataRequest, Holdout, Population
from asyncfed.experiment import from_toml, to_toml


def test_rows_written_out_are_those_that_are_made_one_by_one():
    data, request = Population(rows=3, most_rows=9, shift=0.5), DataRequest(num_clients=20, seed=4)
    clients, people = data.prepare(request).clients, data.virtual_clients(request)
    assert clients.num_examples.tolist() == list(people.sizes)
    assert len(set(people.sizes)) > 2
    for client in range(20):
        x, y, _ = people.pack([client])
        assert np.array_equal(clients.client(client)[0], x)
        assert np.array_equal(clients.client(client)[1], y)
    assert not np.array_equal(people.pack([3], held_out=True)[0], people.pack([3])[0])
    assert np.array_equal(people.pack([3, 5], threads=2)[0], people.pack([3, 5])[0])


def test_the_fingerprint_follows_from_everything_that_rows_follow_from():
    kinds = [Population(), Population(rows=21), Population(noise=0.1), Population(shift=0.1), Population(most_rows=30)]
    requests = [DataRequest(), DataRequest(seed=1), DataRequest(num_clients=11), DataRequest(dtype="float32")]
    prints = [kind.virtual_clients(DataRequest()).sha256() for kind in kinds]
    prints += [Population().virtual_clients(request).sha256() for request in requests[1:]]
    assert len(set(prints)) == len(prints)
    assert Population().virtual_clients(DataRequest(labels=True)).sha256() not in prints


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": 0}, "data.rows is 0"),
        ({"most_rows": 5}, "a client has at least the first"),
        ({"exponent": 0.0}, "data.exponent is 0.0"),
        ({"noise": -1.0}, "data.noise is -1.0"),
        ({"bias": float("nan")}, "data.bias is nan"),
        ({"measured_clients": 0}, "data.measured_clients is 0"),
    ],
)
def test_settings_out_of_range_are_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        Population(**changes)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (DataRequest(split=af.data.InOrder()), "leave it out"),
        (DataRequest(holdout=Holdout()), "leave holdout out"),
        (DataRequest(classes=True), "Use a linear model"),
    ],
)
def test_what_makes_no_sense_for_a_population_is_refused(request_, words):
    with pytest.raises(ConfigError, match=words):
        Population().virtual_clients(request_)


def test_a_large_population_is_not_written_out():
    with pytest.raises(ConfigError, match="the rows of all 100,000,000 clients in arrays"):
        Population().prepare(DataRequest(num_clients=10**8))


def test_toml():
    experiment = af.Experiment(num_clients=10**8, data=Population(most_rows=50), strategy=af.strategies.FedBuff())
    assert from_toml(to_toml(experiment)) == experiment
    assert experiment.makes_rows_late
    assert not af.Experiment().makes_rows_late
