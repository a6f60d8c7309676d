"""W1 to W3 in FedLab: synchronous federated averaging in its standalone pipeline.

Its asynchronous server works over a network only, not in the standalone pipeline. Batches are slices of tensors, which
is faster than PyTorch's DataLoader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.core.standalone import StandalonePipeline

from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task


class Batches:
    """One client's samples, reshuffled every time they are gone through."""

    def __init__(self, x: Any, y: Any, size: int) -> None:
        self._x, self._y, self._size = x, y, size

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for rows in torch.randperm(len(self._x)).split(self._size):
            yield self._x[rows], self._y[rows]


class Clients:
    """What FedLab asks of a federated dataset."""

    def __init__(self, task: Task) -> None:
        self._samples = task.tensors()

    def get_dataloader(self, client: int, batch_size: int) -> Batches:
        return Batches(*self._samples[client], batch_size)


class TimedPipeline(StandalonePipeline):
    def __init__(self, handler: Any, trainer: Any, clock: Clock) -> None:
        super().__init__(handler, trainer)
        self._clock = clock

    def evaluate(self) -> None:
        """Called after every round."""
        self._clock.merged(self.handler.num_clients_per_round)


def run(task: Task, updates: int, clock: Clock) -> Any:
    module = task.module()
    trainer = SGDSerialClientTrainer(module, task.num_clients)
    trainer.setup_dataset(Clients(task))
    trainer.setup_optim(task.epochs, task.batch, task.rate)
    trainer.criterion = task.loss()
    handler = SyncServerHandler(module, task.rounds(updates), task.in_flight / task.num_clients)
    TimedPipeline(handler, trainer, clock).main()
    return handler.model


if __name__ == "__main__":
    answer("fedlab", {"w1": 60, "w2": 10_000, "w3": 2_000}, run)
