"""A PyTorch module on a real federation: TLS, node keys, data of the nodes' own, and what befalls it."""

import os
import signal
import time

import numpy as np
import pytest
from tests.flower.test_network import events, kill_server_app, nodes_online, processes, start, wait_for

import asyncfed as af
from asyncfed.core.types import Budget, Work
from asyncfed.experiment import to_toml
from asyncfed.flower import federation
from asyncfed.flower.new_app import write_app
from asyncfed.strategies import AFL
from asyncfed.strategies.schedules import ConstantRate

UPDATES = 24
CLIENTS = 4
PARTED = 1.5
"""The final loss on held-out rows may be so many times that of the simulation: whose update came last differs."""

DATA = """
import os, time
from pathlib import Path

import numpy as np

HOME = Path(os.environ["FLWR_HOME"])


def load_data(client, node):
    with (HOME / f"loaded-{client}").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    with np.load(HOME / f"rows-{client}.npz", allow_pickle=False) as rows:
        return rows["x"], rows["y"]


def load_test():
    with np.load(HOME / "rows-test.npz", allow_pickle=False) as rows:
        return rows["x"], rows["y"]
"""
MODEL = """
import os, time
from pathlib import Path

from torch import nn

import asyncfed as af


class Marked(nn.Module):
    # Leaves a mark while it is trained, and takes its time, so that a node can be killed in the middle of a task.

    def forward(self, x):
        if self.training and (Path(os.environ["FLWR_HOME"]) / "slowly").exists():
            (Path(os.environ["FLWR_HOME"]) / f"at-work-{os.getpid()}").touch()
            time.sleep(0.02)
        return x


def network():
    return nn.Sequential(Marked(), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2))


def make_problem(rows):
    return af.problems.torch_problem(network, "cross_entropy", rows)
"""


def images(rows, seed):
    chance = np.random.default_rng(seed)
    y = chance.integers(0, 2, rows)
    x = chance.normal(size=(rows, 1, 8, 8)).astype(np.float32)
    x[np.arange(rows), 0, 1 + 4 * y] += 1.0
    return x, y


ROWS = {**{str(client): images(80 + 20 * client, client) for client in range(CLIENTS)}, "test": images(400, 99)}


@pytest.fixture(scope="module")
def learning():
    work = Work(epochs=4, batch_size=16, learning_rate=0.1)
    return af.Experiment(
        name="module",
        num_clients=CLIENTS,
        dtype="float32",
        strategy=AFL(concurrency=3, work=work, schedule=ConstantRate()),
        budget=Budget(updates=UPDATES),
    )


@pytest.fixture
def app(tmp_path, learning):
    folder = tmp_path / "module"
    write_app(folder, CLIENTS, torch=True)
    (folder / "experiment.toml").write_text(to_toml(learning))
    (folder / "app_module" / "data.py").write_text(DATA)
    (folder / "app_module" / "model.py").write_text(MODEL)
    return folder


def simulate(learning):
    """The same module on the same rows, without a network: its loss on the held-out rows, first and last."""
    from torch import nn

    def network():
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2))

    clients = [ROWS[str(client)] for client in range(CLIENTS)]
    problem = af.problems.torch_problem(network, "cross_entropy", clients, test=ROWS["test"])
    return af.run(learning, problem=problem).evaluations["test_loss"][[0, -1]]


def loaded_by(here, client):
    """The processes that loaded this client's rows, one time after another."""
    file = here.home / f"loaded-{client}"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def kill_at_work(here, client):
    """kill -9 of a SuperNode, and of nothing else, in the middle of a task."""
    worker = loaded_by(here, client)[-1]
    mark = here.home / f"at-work-{worker}"
    mark.unlink(missing_ok=True)
    wait_for(mark.exists, f"client {client} to be at work")
    node = here.processes.pop(f"node-{client}")
    os.kill(node.pid, signal.SIGKILL)
    node.wait()
    wait_for(lambda: worker not in processes(here, "node_worker"), "its worker to end", 30.0)


def test_a_module_survives_the_loss_of_a_node_a_late_one_and_a_restart(tmp_path, app, learning):
    pytest.importorskip("torch", reason="torch is not installed")
    began = time.monotonic()
    with federation(tmp_path / "federation", 3) as here:
        for name, (x, y) in ROWS.items():
            np.savez(here.home / f"rows-{name}.npz", x=x, y=y)
        (here.home / "slowly").touch()
        wait_for(lambda: len(nodes_online(here)) == 3, "three nodes to be online")
        journal = here.folder / "module.sqlite"
        start(here, app, journal, ttl=30.0, late_nodes=1, robust="false")
        wait_for(lambda: len(events(journal, "merge")) >= 3, "the first merges")
        kill_at_work(here, 1)
        here.start_node(3)
        wait_for(lambda: [row for row in events(journal, "report") if row.client == 3], "the new node's first update")
        before = [row.ticket for row in events(journal, "merge")]
        kill_server_app(here)
        assert len(before) < UPDATES
        (here.home / "slowly").unlink()
        start(here, app, journal, ttl=30.0, late_nodes=1, return_seconds=20.0, robust="false")
        run = wait_for(lambda: af.load(journal).finished and af.load(journal), "the run to end")
        loaded = [loaded_by(here, client) for client in (0, 2, 3)]
        assert all(len(pids) == len(set(pids)) <= 2 for pids in loaded)  # once in each run of Flower's
        assert max(map(len, loaded)) == 2  # a slow node may not have been needed any more in the second
    wait_for(lambda: not processes(here, ""), "its processes to end", 60.0)

    merges = events(journal, "merge")
    tickets = [row.ticket for row in merges]
    assert len(tickets) == len(set(tickets)) == UPDATES
    assert tickets[: len(before)] == before
    assert (3, 140) in {(row.client, row.num_examples) for row in events(journal, "join")}
    assert 1 in {row.client for row in events(journal, "lost", "leave")}
    assert (run.verdict, run.header["live"]["examples"]) == ("finished", [80, 100, 120, 0])
    first, last = simulate(learning)
    reached = run.evaluations["objective"][-1]
    print(f"\nloss {run.evaluations['objective'][0]:.4f} to {reached:.4f}, simulated {first:.4f} to {last:.4f}")
    print(f"took {time.monotonic() - began:.0f} s")
    assert first > 3 * last
    assert reached < PARTED * last
