"""A PyTorch module on real processes: trained by its clients, replayed by the simulator."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.uplinks import ErrorFeedback, LowRank

nn = pytest.importorskip("torch", reason="torch is not installed").nn


def perceptron():
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))


def rows(client):
    rng = np.random.default_rng(client)
    x = rng.normal(size=(12, 5)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("uplink", [(), (ErrorFeedback(codec=LowRank(rank=1)),)], ids=["whole", "low rank"])
def test_a_module_learns_live_and_replays_to_the_same_bits(tmp_path, uplink):
    problem = af.problems.torch(perceptron, "cross_entropy", [rows(client) for client in range(3)])
    work = af.Work(epochs=2, batch_size=4, learning_rate=0.1, uplink=uplink)
    experiment = af.Experiment(
        num_clients=3,
        strategy=af.strategies.FedBuff(concurrency=2, buffer_size=2, work=work),
        budget=af.Budget(rounds=15),
    )
    run = af.run_live(experiment, out=tmp_path / "live.sqlite", problem=problem)
    assert run.verdict == "finished"
    assert run.evaluations["objective"][-1] < run.evaluations["objective"][0]
    assert af.verify(tmp_path / "live.sqlite", problem=problem).ok
