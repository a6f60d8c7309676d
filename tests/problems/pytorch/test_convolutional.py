import numpy as np
import pytest

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.types import Budget, Work
from asyncfed.data import IID, DataRequest, DigitImages, Holdout
from asyncfed.engine.evaluation import Evaluation
from asyncfed.experiment import Experiment, from_toml, to_toml
from asyncfed.problems import Convolutional, LinearModel
from asyncfed.runs.simulate import simulate
from asyncfed.strategies.fedbuff import FedBuff

pytest.importorskip("torch", reason="torch is not installed")


def test_it_is_written_in_toml_and_learns_images():
    experiment = Experiment(
        data=DigitImages(),
        num_clients=4,
        holdout=Holdout(validation=0.0, test=0.2),
        dtype="float32",
        model=Convolutional(channels=2),
        strategy=FedBuff(concurrency=4, buffer_size=4, work=Work(steps=10, batch_size=16, learning_rate=0.3)),
        budget=Budget(updates=32),
        evaluation=Evaluation(every=0),
    )
    assert from_toml(to_toml(experiment)) == experiment
    problem = experiment.problem()
    assert problem.num_params == (9 * 2 + 2) + (9 * 2 * 4 + 4) + (16 * 10 + 10)
    assert simulate(experiment, problem=problem, threads=1).evaluations["test_accuracy"][-1] > 0.3  # by chance, 0.1


def test_images_keep_their_pixels():
    clients = DigitImages().prepare(DataRequest(IID(), 3, 0, "float32", None, False, True)).clients
    assert clients.x.shape == (1797, 64)
    assert clients.x.dtype == np.float32
    assert (clients.x.min(), clients.x.max()) == (0.0, 1.0)
    assert set(clients.y.tolist()) == set(range(10))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="width is 6"):
        Convolutional(width=6)
    with pytest.raises(ConfigError, match="channels is 0"):
        Convolutional(channels=0)
    with pytest.raises(ConfigError, match="num_classes is 1"):
        Convolutional(num_classes=1)
    with pytest.raises(DataError, match="A row has 64 numbers"):
        Experiment(data=DigitImages(), dtype="float32", model=Convolutional(height=4)).problem()
    with pytest.raises(ConfigError, match="ten classes"):
        Experiment(data=DigitImages(), model=LinearModel(loss="logistic")).problem()
