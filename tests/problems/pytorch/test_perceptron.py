import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget
from asyncfed.data import PaperClassification
from asyncfed.experiment import Experiment, from_toml, to_toml
from asyncfed.problems import Perceptron

pytest.importorskip("torch", reason="torch is not installed")


def test_it_is_written_in_toml_and_learns():
    experiment = Experiment(
        data=PaperClassification(num_samples=60, num_features=3),
        num_clients=3,
        dtype="float32",
        model=Perceptron(hidden=4, num_classes=2),
        budget=Budget(rounds=3),
    )
    assert from_toml(to_toml(experiment)) == experiment
    clients = af.data.Clients.from_lists([[[0.0], [1.0]], [[2.0], [3.0]]], [[0, 0], [1, 2]], labels=False)
    problem = Perceptron(hidden=4).build(clients)
    assert problem.num_params == 4 * 2 + 3 * 5
    assert Perceptron(hidden=4).build(clients).fingerprint() == problem.fingerprint()
    assert Perceptron(hidden=5).build(clients).fingerprint() != problem.fingerprint()
    assert problem.together


def test_impossible_shapes_are_refused():
    with pytest.raises(ConfigError, match="num_classes is 1"):
        Perceptron(num_classes=1)
