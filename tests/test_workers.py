"""Other processes train to the same bytes."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.testing import check_problem


def test_workers_change_nothing(small):
    experiment = small(evaluation=af.Evaluation(drift=True), budget=af.Budget(rounds=6))
    problem = experiment.problem()
    alone = af.run(experiment, problem=problem)
    with af.Workers(problem, 2) as pooled:
        check_problem(pooled)
        together = af.run(experiment, problem=pooled)
    assert together.sha256 == alone.sha256
    assert together.evaluations["client_drift"].tolist() == pytest.approx(
        alone.evaluations["client_drift"].tolist(), nan_ok=True
    )


def test_what_cannot_be_pickled_is_refused(small):
    problem = small().problem()
    problem.clients = lambda: None
    with pytest.raises(ConfigError, match="Define its functions at the top of a module"):
        af.Workers(problem, 2)
    with pytest.raises(ConfigError, match="count is 0"):
        af.Workers(small().problem(), 0)


@pytest.mark.slow
def test_a_convolutional_network_is_trained_to_the_same_bytes_by_other_processes():
    nn = pytest.importorskip("torch", reason="torch is not installed").nn
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(20, 1, 8, 8)).astype("f4"), rng.integers(0, 3, 20)) for _ in range(4)]
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
    problem = af.problems.torch(partial(deepcopy, module), "cross_entropy", rows)
    experiment = af.Experiment(
        num_clients=4, strategy=af.strategies.AFL(concurrency=3, work=af.Work(batch_size=5)), budget=af.Budget(rounds=4)
    )
    alone = af.run(experiment, problem=problem)
    with af.Workers(problem, 2) as pooled:
        assert af.run(experiment, problem=pooled).sha256 == alone.sha256
