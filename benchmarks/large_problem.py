"""A problem with as many parameters as one likes and next to nothing to train: clients draw the model to themselves.

Client c's loss is |p - c|² / 2, so that a step of the learning rate moves every parameter towards the number c.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

from asyncfed.core.types import Work


class LargeShard:
    """One client: a number."""

    num_examples = 1

    def __init__(self, client: int) -> None:
        self._target = np.float32(client)
        self._trained: np.ndarray | None = None

    def train(self, params: np.ndarray, work: Work, key: int) -> np.ndarray:
        """One step, into memory that is used again: it has been sent before the next task is begun."""
        if self._trained is None:
            self._trained = np.empty_like(params)
        np.multiply(params, np.float32(1.0 - work.learning_rate), out=self._trained)
        np.add(self._trained, np.float32(work.learning_rate) * self._target, out=self._trained)
        return self._trained


class LargeProblem:
    """As many clients as numbers from 0."""

    def __init__(self, num_params: int, num_clients: int) -> None:
        self.num_params, self.num_clients = num_params, num_clients
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        self.num_examples = np.ones(num_clients, np.int64)

    def init(self, seed: int, client: int | None = None, how: Any = "zeros") -> np.ndarray:
        """Zeros."""
        return np.zeros(self.num_params, np.float32)

    def shard(self, client: int) -> LargeShard:
        """A client."""
        return LargeShard(client)

    def local_train(self, params: np.ndarray, client: int, work: Work, key: int) -> np.ndarray:
        """One step."""
        return LargeShard(client).train(params, work, key).copy()

    def local_train_many(self, jobs: Any, threads: int = 1) -> np.ndarray:
        """One after another."""
        rows = zip(jobs.starts, jobs.clients, jobs.works, jobs.keys, strict=True)
        return np.stack([self.local_train(*row) for row in rows])

    def local_path_moments(self, jobs: Any, threads: int = 1) -> Any:
        """Not measured here."""
        raise NotImplementedError

    def client_loss(self, params: np.ndarray, client: int) -> float:
        """|p - c|² / 2."""
        distance = params.astype(np.float64) - client
        return float(distance.dot(distance)) / 2

    def client_losses(self, params: np.ndarray, threads: int = 1) -> np.ndarray:
        """Of each client."""
        return np.array([self.client_loss(params, client) for client in range(self.num_clients)])

    def gradient(self, params: np.ndarray, client: int) -> np.ndarray:
        """p - c."""
        return params - np.float32(client)

    def evaluate(self, params: np.ndarray, threads: int = 1) -> dict[str, float]:
        """The mean of the clients' losses."""
        loss = float(self.client_losses(params).mean())
        return {"objective": loss, "pooled_loss": loss}

    def optimum(self) -> None:
        """Not needed."""

    def fingerprint(self) -> str:
        """Of the two numbers that it is made from."""
        return sha256(f"large {self.num_params} {self.num_clients}".encode()).hexdigest()
