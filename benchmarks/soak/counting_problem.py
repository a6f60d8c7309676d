"""A model that counts: parameter c is how many updates of client c were merged.

Client c adds 1 to parameter c and nothing else, and every change counts whole, so after any number of merges the model
itself says who was merged how often. A client sees it too: whoever gets its next work from the same server must find
its own count one higher than before, for its last result was merged before that work was sent. It notes what it saw in
a file, so that a client started again after a kill knows: its last result was either merged or not, and nothing else.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from asyncfed.core.types import Work
from benchmarks.large_problem import LargeProblem

PRACTICE = 0
"""The key of the training that a client's process does before it says hello: no work of anybody's."""


class CountingShard:
    """One client. `notes` is a folder in which it keeps what it saw, and writes down what cannot be."""

    num_examples = 1

    def __init__(self, client: int, notes: str) -> None:
        self._client, self._notes = client, notes
        self._seen: np.memmap[Any, Any] | None = None
        self._answered_here = False

    def train(self, params: np.ndarray, work: Work, key: int) -> np.ndarray:
        """The model with one more update of this client in it."""
        if self._notes and key != PRACTICE:
            self._compare(int(params[self._client]))
        trained = params.copy()
        trained[self._client] += 1.0
        return trained

    def _compare(self, count: int) -> None:
        """A server that goes on merged the last result; one that was killed may have, or not."""
        if self._seen is None:
            path = Path(self._notes) / f"client-{self._client}"
            if not path.exists():
                path.write_bytes(np.array([-1], np.int64).tobytes())
            self._seen = np.memmap(path, np.int64, "r+", shape=(1,))
        before = int(self._seen[0])
        expected = (before + 1,) if self._answered_here else (before, before + 1)
        if before >= 0 and count not in expected:
            with (Path(self._notes) / "contradictions").open("a") as file:
                file.write(f"client {self._client} of process {os.getpid()} saw {count} after {before}\n")
        self._seen[0] = count
        self._answered_here = True


class CountingProblem(LargeProblem):
    """As many parameters as clients, in float64: exact up to 2^53 merges."""

    def __init__(self, num_clients: int, notes: str = "") -> None:
        super().__init__(num_clients, num_clients)
        self.dtype = np.dtype(np.float64)
        self._notes = notes

    def init(self, seed: int, client: int | None = None, how: Any = "zeros") -> np.ndarray:
        """Nobody was merged yet."""
        return np.zeros(self.num_params)

    def shard(self, client: int) -> CountingShard:
        """A client."""
        return CountingShard(client, self._notes)

    def local_train(self, params: np.ndarray, client: int, work: Work, key: int) -> np.ndarray:
        """One more update of this client."""
        return CountingShard(client, "").train(params, work, key)

    def evaluate(self, params: np.ndarray, threads: int = 1) -> dict[str, float]:
        """How many updates were merged; there is nothing to minimise."""
        return {"objective": float(params.sum()), "pooled_loss": float(params.sum())}

    def fingerprint(self) -> str:
        """Of the one number that it is made from."""
        return sha256(f"counting {self.num_clients}".encode()).hexdigest()
