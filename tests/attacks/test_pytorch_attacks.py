"""Attacks on PyTorch problems: rows of any shape, classes, a backdoor in images."""

import pickle

import numpy as np
import pytest

import asyncfed as af
from asyncfed.attacks import Backdoor, InnerProduct, LabelFlip, Liars, SignFlip, with_liars
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Jobs

torch = pytest.importorskip("torch")
WORK = Work(epochs=2, batch_size=8, learning_rate=0.1)


def network():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3))


def images(num_clients=5):
    """Three classes of 4×4 images: each has a bright row of its own."""
    draws = np.random.default_rng(0)
    pairs = []
    for _ in range(num_clients):
        y = np.arange(24) % 3
        x = draws.normal(0.0, 0.3, (24, 1, 4, 4)).astype(np.float32)
        x[np.arange(24), 0, y] += 1.0
        pairs.append((x, y))
    return pairs


def problem():
    return af.problems.torch_problem(network, "cross_entropy", images())


@pytest.mark.parametrize("attack", [SignFlip(), LabelFlip(), InnerProduct(), Backdoor(features=(15,), value=5.0)])
def test_shards_lie_to_the_bits_of_the_problem(attack):
    lying = with_liars(problem(), Liars(attack=attack, clients=(0, 3)), seed=0)
    starts = np.array([lying.init(1), lying.init(2), lying.init(1)])
    jobs = Jobs(starts, [0, 1, 3], [WORK] * 3, [7, 8, 9])
    sent = lying.local_train_many(jobs)
    for row, client in enumerate(jobs.clients):
        shard = pickle.loads(pickle.dumps(lying.shard(client)))
        assert np.array_equal(shard.train(starts[row], WORK, jobs.keys[row]), sent[row])


def test_flipped_classes_are_counted_from_the_other_end():
    honest = problem()
    lying = with_liars(honest, Liars(attack=LabelFlip(), clients=(2,)), seed=0)
    pairs = images()
    pairs[2] = (pairs[2][0], 2 - pairs[2][1])
    flipped = af.problems.torch_problem(network, "cross_entropy", pairs)
    start = honest.init(0)
    assert honest.num_classes == 3
    assert np.array_equal(lying.local_train(start, 2, WORK, 5), flipped.local_train(start, 2, WORK, 5))


def test_a_backdoor_is_learnt_and_measured_while_accuracy_stays():
    experiment = af.Experiment(
        num_clients=5,
        strategy=af.strategies.FedBuff(concurrency=3, buffer_size=3, work=WORK),
        budget=af.Budget(rounds=25),
        attack=Liars(attack=Backdoor(features=(15,), value=5.0, target=0, boost=2.0), count=2),
    )
    attacked = af.run(experiment, problem=problem())
    honest = af.run(af.replace(experiment, attack=Liars(attack=SignFlip(), share=0.0)), problem=problem())
    last = {name: values[-1] for name, values in attacked.evaluations.items()}
    assert last["backdoor_success"] > 0.8
    assert last["accuracy"] > 0.9
    assert "backdoor_success" not in honest.evaluations
