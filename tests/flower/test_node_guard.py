"""A node's own limits: set in its configuration, counted in its file, and all the server learns is that it refused."""

import pytest
from flwr.app import RecordDict
from tests.flower.test_node_program import ask

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.flower.node_app import NodeError
from asyncfed.flower.node_guard import NodeGuard, read_guard
from asyncfed.flower.node_program import make_client_app
from asyncfed.live.client_guard import LeastNoise, RefusedTask
from asyncfed.strategies import FedAsync
from asyncfed.uplinks import LocalNoise

BASE = {"epochs": 1, "batch_size": 4, "learning_rate": 0.01}


def noisy(multiplier):
    return Work(**BASE, uplink=(LocalNoise(clip=0.5, multiplier=multiplier),))


def limits(folder, **changed):
    return {"least-noise": 0.1, "most-uploads": 2, "uploads-file": str(folder / "uploads"), **changed}


def test_what_is_refused_is_not_counted_and_what_is_counted_lasts(tmp_path):
    guard = NodeGuard(LeastNoise(multiplier=1.0, uploads=2), tmp_path / "uploads")
    with pytest.raises(RefusedTask, match=r"noise of 0\.5 clips"):
        guard.admit(noisy(0.5))
    assert guard.uploads_made() == 0
    guard.admit(noisy(1.0))
    again = NodeGuard(*guard)
    again.admit(noisy(2.0))
    for _ in range(2):
        with pytest.raises(RefusedTask, match="upload 3 of this client, which makes 2 at most"):
            guard.admit(noisy(1.0))
    assert again.uploads_made() == 2


def test_where_uploads_cannot_be_counted_none_is_made(tmp_path):
    guard = NodeGuard(LeastNoise(multiplier=1.0, uploads=2), tmp_path / "gone" / "uploads")
    with pytest.raises(FileNotFoundError):
        guard.admit(noisy(1.0))


@pytest.mark.parametrize("noise", [2, 2.0])
def test_a_nodes_configuration_sets_it(tmp_path, noise):
    guard = read_guard({"partition-id": 0, **limits(tmp_path, **{"least-noise": noise})})
    assert guard == (LeastNoise(multiplier=2.0, uploads=2), tmp_path / "uploads")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"least-noise": None}, "all three in its --node-config"),
        ({"least-noise": True}, "all three in its --node-config"),
        ({"most-uploads": None}, "all three in its --node-config"),
        ({"most-uploads": 2.5}, "all three in its --node-config"),
        ({"uploads-file": None}, "all three in its --node-config"),
        ({"uploads-file": "uploads"}, "must be an absolute path in a folder that exists"),
        ({"uploads-file": "/no such folder/uploads"}, "must be an absolute path in a folder that exists"),
        ({"least-noise": 0}, r"least noise is 0\.0; it must be a positive number"),
    ],
)
def test_half_a_guard_is_refused_when_the_node_introduces_itself(experiment, tmp_path, changed, why):
    node = {key: value for key, value in limits(tmp_path, **changed).items() if value is not None}
    with pytest.raises(ConfigError, match=why):
        read_guard(node)
    with pytest.raises(NodeError, match=r"^ConfigError$"):
        ask(make_client_app(experiment), "query", RecordDict(), **{"partition-id": 0}, **node)


@pytest.mark.parametrize(("asked", "accepted"), [(0.05, 0), (0.1, 2)])
def test_a_guarded_node_refuses_and_the_others_go_on(federation, tmp_path, asked, accepted):
    """Client 1 has limits. Its SuperNode is started again before each message, and forgets all but the file."""
    run = federation(strategy=FedAsync(concurrency=3, work=noisy(asked)), budget=Budget(updates=30))
    guarded = run.node_of(1)
    run.grid.settings[guarded] = limits(tmp_path)
    for _ in range(40):
        run.step()
        run.grid.states.clear()
        run.all_work()
    assert run.session.finished
    clients = [row.client for row in run.events("report")]
    assert clients.count(1) == accepted
    assert len(clients) >= 30
    reasons = {row.reason for row in run.events("lost") if row.client == 1}
    assert reasons == {"its node reports error 2: RefusedTask"}
