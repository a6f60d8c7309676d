"""W1 to W3 in fluke: synchronous federated averaging, its clients given their samples ready-made."""

from __future__ import annotations

from typing import Any

from fluke import DDict
from fluke.algorithms.fedavg import FedAVG
from fluke.client import Client
from fluke.config import OptimizerConfigurator
from fluke.data import FastDataLoader
from fluke.server import Server
from fluke.utils import FederationObserver

from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task


class Tick(FederationObserver):
    """Tells the clock after every round."""

    def __init__(self, clock: Clock, cohort: int) -> None:
        self._clock, self._cohort = clock, cohort

    def end_round(self, round: int) -> None:
        self._clock.merged(self._cohort)


def run(task: Task, updates: int, clock: Clock) -> Any:
    optimiser = OptimizerConfigurator(DDict(name="SGD", lr=task.rate), DDict(name="StepLR", step_size=1, gamma=1.0))
    clients = [
        Client(
            index=client,
            train_set=FastDataLoader(x, y, num_labels=10, batch_size=task.batch, shuffle=True),
            test_set=None,
            optimizer_cfg=optimiser,
            loss_fn=task.loss(),
            local_epochs=task.epochs,
        )
        for client, (x, y) in enumerate(task.tensors())
    ]
    server = Server(task.module(), None, clients)
    federation = FedAVG(task.num_clients, None, DDict(), clients=clients, server=server)
    federation.set_callbacks(Tick(clock, task.in_flight))
    federation.run(task.rounds(updates), task.in_flight / task.num_clients, finalize=False)
    return server.model


if __name__ == "__main__":
    answer("fluke-fl", {"w1": 60, "w2": 6_000, "w3": 1_500}, run)
