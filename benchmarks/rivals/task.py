"""A workload as a rival sees it: the clients' samples, the model and the local work, with nothing of AsyncFed in it.

Runs in every rival's environment, so it needs NumPy and PyTorch only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

WORKLOADS = ("w1", "w2", "w3")


class Task(NamedTuple):
    """`x` is clients x samples x features and `y` clients x samples, of whole numbers where the model is a network.

    `folder` is where it was read from, for other processes to read it again.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    epochs: int
    batch: int
    rate: float
    in_flight: int
    folder: str = ""

    @property
    def num_clients(self) -> int:
        return len(self.x)

    @property
    def is_network(self) -> bool:
        return bool(np.issubdtype(self.y.dtype, np.integer))

    def rounds(self, updates: int) -> int:
        """How many rounds a synchronous library needs: as many clients at once as are in flight here. At least 2."""
        return max(2, round(updates / self.in_flight))

    def tensors(self) -> list[tuple[Any, Any]]:
        """Each client's samples, as a module wants them: targets of the linear model are a column."""
        import torch

        targets = self.y if self.is_network else self.y[:, :, None]
        return [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in zip(self.x, targets, strict=True)]

    def module(self) -> Any:
        """The model to train, the same to begin with for everyone."""
        import torch
        from torch import nn

        torch.manual_seed(0)
        features = self.x.shape[2]
        if self.is_network:
            return nn.Sequential(nn.Linear(features, 64), nn.ReLU(), nn.Linear(64, int(self.y.max()) + 1))
        return nn.Linear(features, 1)

    def loss(self) -> Any:
        from torch import nn

        return nn.CrossEntropyLoss() if self.is_network else nn.MSELoss()

    def mean_loss(self, module: Any) -> float:
        """Over all samples of all clients."""
        import torch

        with torch.no_grad():
            return float(np.mean([self.loss()(module(x), y) for x, y in self.tensors()]))


def save(task: Task, folder: Path) -> None:
    np.savez(folder / f"{task.name}.npz", **task._asdict())


@cache
def load(folder: Path, name: str) -> Task:
    """What `save` wrote; read once in each process."""
    with np.load(folder / f"{name}.npz") as stored:
        single = {part: stored[part].item() for part in ("epochs", "batch", "rate", "in_flight")}
        return Task(name, stored["x"], stored["y"], **single, folder=str(folder.resolve()))
