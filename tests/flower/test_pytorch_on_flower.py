"""A PyTorch module on Flower: built on every node from its own rows, and measured by the server on rows of its own."""

import numpy as np
import pytest
from flwr.app import Message, RecordDict
from tests.flower.test_server_program import PromptGrid

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.flower.node_program import load_problem, make_client_app
from asyncfed.flower.server_program import make_server_app, run_on_grid
from asyncfed.flower.settings import FlowerSettings
from asyncfed.strategies import FedBuff
from asyncfed.uplinks import ErrorFeedback, LowRank, TopK


def images(client, node=None):
    """Rows of a shape that no table has."""
    chance = np.random.default_rng(client)
    x = chance.normal(size=(12, 1, 4, 4)).astype(np.float32)
    return x, (x[:, 0, 0, 0] > 0).astype(np.int64)


@pytest.fixture
def build():
    nn = pytest.importorskip("torch", reason="torch is not installed").nn

    def network():
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))

    return lambda rows: af.problems.torch_problem(network, "cross_entropy", rows)


@pytest.fixture(params=[TopK(fraction=0.3), LowRank(rank=1)], ids=["top_k", "low_rank"])
def learning(experiment, request):
    work = Work(epochs=2, batch_size=4, learning_rate=0.1, uplink=(ErrorFeedback(codec=request.param),))
    strategy = FedBuff(concurrency=3, buffer_size=3, work=work)
    return af.replace(experiment, strategy=strategy, budget=Budget(rounds=25), dtype="float32")


def test_a_module_learns_on_flower(learning, build, tmp_path):
    grid = PromptGrid(learning, range(3))
    grid.app = make_client_app(learning, images, build)
    settings = FlowerSettings(journal=str(tmp_path / "run.sqlite"), poll=1e-3, wait_nodes=3)
    run_on_grid(grid, learning, settings, lambda: images(99), build)
    run = af.load(settings.journal)
    assert run.verdict == "finished"
    assert run.header["own_problem"]
    assert run.evaluations["objective"][-1] < 0.95 * run.evaluations["objective"][0]


def test_a_node_trains_its_module_as_the_whole_problem_does(learning, build):
    whole = build([images(client) for client in range(3)])
    params, work = whole.init(3), learning.strategy.work
    for client in range(3):
        own = load_problem(learning, client, {}, images, build)
        assert own.shard.train(params, work, 7).tobytes() == whole.local_train(params, client, work, 7).tobytes()
        assert own.first_model().tobytes() == whole.init(learning.seed, client=client).tobytes()


def test_a_nodes_data_are_loaded_once_per_process(experiment):
    asked = []

    def load(client, node):
        asked.append(client)
        return np.eye(10), np.ones(10)

    grid = PromptGrid(experiment, [])
    grid.app = make_client_app(experiment, load)
    for node in (grid.add(0), grid.add(1)):
        for _ in range(2):
            assert not grid.run_app(grid_query(node), node).has_error()
    assert asked == [0, 1]


def grid_query(node):
    message = Message(RecordDict(), node, "query")
    message.metadata.__dict__["_message_id"] = "question"
    return message


def test_a_problem_without_rows_is_refused(experiment):
    with pytest.raises(ConfigError, match="Give it data="):
        make_client_app(experiment, None, lambda rows: None)
    with pytest.raises(ConfigError, match="Give it test_data="):
        make_server_app(experiment, None, lambda rows: None)
