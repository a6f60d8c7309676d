"""W1 and W3 as one would write them in PyTorch without a framework: the yardstick of `w1.py` and `w3.py`.

Nothing but the work itself: no DataLoader, no clock, no journal, one module and one optimiser for all clients. A client
starts from the server's model of the time it was chosen; the server averages every client's latest model, one arrival
after another, first chosen first merged.
"""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor, nn

Samples = tuple[Tensor, Tensor]
Model = list[Tensor]


class Trainer:
    """Local mini-batch SGD, reshuffled every epoch; in epoch e the step is `rate / sqrt(e + 1)`."""

    def __init__(
        self,
        num_features: int,
        epochs: int,
        batch: int,
        rate: float,
        module: nn.Module | None = None,
        loss: nn.Module | None = None,
    ) -> None:
        self.module = nn.Linear(num_features, 1) if module is None else module
        self.epochs, self.batch, self.rate = epochs, batch, rate
        self._loss = nn.MSELoss() if loss is None else loss
        self._optimiser = torch.optim.SGD(self.module.parameters(), lr=rate)

    def model(self) -> Model:
        return [p.detach().clone() for p in self.module.parameters()]

    def train(self, start: Model, samples: Samples) -> Model:
        with torch.no_grad():
            for param, value in zip(self.module.parameters(), start, strict=True):
                param.copy_(value)
        x, y = samples
        for epoch in range(self.epochs):
            self._optimiser.param_groups[0]["lr"] = self.rate / (epoch + 1) ** 0.5
            for rows in torch.randperm(len(x)).split(self.batch):
                self._optimiser.zero_grad()
                self._loss(self.module(x[rows]), y[rows]).backward()
                self._optimiser.step()
        return self.model()


def run(clients: list[Samples], trainer: Trainer, updates: int, in_flight: int, seed: int = 0) -> Model:
    """The server's model after so many merged updates."""
    torch.manual_seed(seed)
    server = trainer.model()
    latest = [server] * len(clients)
    idle = torch.randperm(len(clients)).tolist()
    at_work = deque((idle.pop(), server) for _ in range(in_flight))
    for _ in range(updates):
        client, start = at_work.popleft()
        trained = trainer.train(start, clients[client])
        server = [x + (new - old) / len(clients) for x, new, old in zip(server, trained, latest[client], strict=True)]
        latest[client] = trained
        idle.append(client)
        at_work.append((idle.pop(int(torch.randint(len(idle), ()))), server))
    return server
