"""A problem without data: each client's change is known beforehand, and one client is the canary."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Work
from asyncfed.kernels.keyed_normals import keyed_normals
from asyncfed.problems.protocol import Array, Initialisation, Jobs

CANARY = 0
"""The canary's number among the clients."""


class CanaryProblem:
    """Every training of a client changes the model by the same vector. The canary's is along the first parameter.

        change_0 = length e_0 if the canary takes part, and 0 if it is zeroed out;     change_i = a fixed random vector

    The adversary of differential privacy knows everything but which of the two it is, so nothing is lost by making all
    else as simple as can be; what is audited is everything between a client's change and the models that are released.

    Args:
        takes_part: whether the canary's change is what it is, or zero.
        length: the canary's change before it is clipped, above 0: longer than the clip, so that clipping is audited.
        num_clients: 1 or more.
        num_params: 1 or more.

    >>> CanaryProblem(takes_part=True, length=3.0).change(CANARY).tolist()
    [3.0, 0.0, 0.0]
    """

    def __init__(self, takes_part: bool, length: float, num_clients: int = 2, num_params: int = 3) -> None:
        self.takes_part, self.length = takes_part, length
        self.num_clients, self.num_params = num_clients, num_params
        self.dtype: np.dtype[Any] = np.dtype(np.float64)
        self.num_examples: NDArray[np.int64] = np.ones(num_clients, np.int64)
        key = purpose_key(0, "canary")
        others = [0.3 * keyed_normals(draw_key(key, client, 0), num_params) for client in range(1, num_clients)]
        canary = np.zeros(num_params)
        canary[0] = length if takes_part else 0.0
        self._changes = np.array([canary, *others])

    def change(self, client: int) -> Array:
        """What this client's training changes."""
        row: Array = self._changes[client]
        return row

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """Zeros."""
        return np.zeros(self.num_params)

    def local_train(self, params: Array, client: int, work: Work, key: int) -> Array:
        """The params and the client's change."""
        trained: Array = params + self._changes[client]
        return trained

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """The same for several."""
        trained: Array = jobs.starts + self._changes[list(jobs.clients)]
        return trained

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """One step, from the start."""
        count = len(jobs.clients)
        return np.ones(count), np.zeros((count, self.num_params)), np.zeros(count)

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """Nothing is learnt, and nothing about clients measured."""
        return {"objective": 0.0, "pooled_loss": 0.0}

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """Zeros."""
        return np.zeros(self.num_clients)

    def client_loss(self, params: Array, client: int) -> float:
        """Zero."""
        return 0.0

    def gradient(self, params: Array, client: int) -> Array:
        """Zeros."""
        return np.zeros(self.num_params)

    def optimum(self) -> Array | None:
        """There is none."""
        return None

    def fingerprint(self) -> str:
        """Of all changes."""
        return hashlib.sha256(self._changes.tobytes()).hexdigest()
