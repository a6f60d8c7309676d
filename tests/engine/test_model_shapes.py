"""A codec that needs the shapes of the model is given them by whatever drives the run."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.data import Clients
from asyncfed.engine.model_shapes import with_model_shapes
from asyncfed.problems import Softmax
from asyncfed.strategies import FedBuff
from asyncfed.uplinks import ErrorFeedback, LowRank


class Shaped:
    param_shapes = ((4, 5), (4,))


def softmax():
    """Four classes, ten inputs and a bias: one matrix of 4 by 11."""
    chance = np.random.default_rng(3)
    x = [chance.normal(size=(12, 10)) for _ in range(3)]
    y = [np.argmax(rows[:, :4], axis=1).astype(float) for rows in x]
    return Softmax(Clients.from_lists([rows.tolist() for rows in x], [some.tolist() for some in y], labels=False))


def experiment():
    work = af.Work(epochs=2, batch_size=4, learning_rate=0.1, uplink=(ErrorFeedback(codec=LowRank(rank=1)),))
    strategy = FedBuff(concurrency=2, buffer_size=2, work=work)
    return af.Experiment(num_clients=3, strategy=strategy, budget=af.Budget(rounds=6))


def test_shapes_are_filled_in_wherever_the_codec_is():
    given = LowRank(rank=1, shapes=((1, 24),))
    strategy = FedBuff(work=af.Work(uplink=(ErrorFeedback(codec=LowRank(rank=1)), given)))
    filled = with_model_shapes(strategy, Shaped())
    assert filled.work.uplink == (ErrorFeedback(codec=LowRank(rank=1, shapes=Shaped.param_shapes)), given)
    assert with_model_shapes(filled, object()) is filled
    plain = FedBuff()
    assert with_model_shapes(plain, object()) is plain


def test_a_problem_that_does_not_know_its_shapes_is_refused():
    with pytest.raises(ConfigError, match=r"low_rank needs the shapes of the model's tensors, and object has no"):
        with_model_shapes(experiment().strategy, object())


def test_a_run_counts_the_bytes_of_its_factors_and_verifies(tmp_path):
    run = af.run(experiment(), problem=softmax(), out=tmp_path / "run.sqlite")
    assert run.rounds["bytes_up"][-1] == 6 * 2 * (4 + 11) * 8
    assert run.evaluations["objective"][-1] < run.evaluations["objective"][0]
    assert af.verify(tmp_path / "run.sqlite", problem=softmax()).ok


@pytest.mark.slow
def test_a_live_run_does_the_same(tmp_path):
    run = af.run_live(experiment(), problem=softmax(), out=tmp_path / "live.sqlite")
    assert run.verdict == "finished"
    assert af.verify(tmp_path / "live.sqlite", problem=softmax()).ok


def test_a_module_knows_the_shapes_of_its_tensors():
    nn = pytest.importorskip("torch", reason="torch is not installed").nn
    rows = (np.ones((4, 3), np.float32), np.array([0, 1, 0, 1]))
    problem = af.problems.torch(lambda: nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2)), "cross_entropy", [rows])
    assert problem.param_shapes == ((5, 3), (5,), (2, 5), (2,))
    assert sum(int(np.prod(shape)) for shape in problem.param_shapes) == problem.num_params
