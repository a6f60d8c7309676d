"""The server's side of a problem whose data are with the clients: the model, and held-out rows to measure it on."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NoReturn

import numpy as np

from asyncfed.core.errors import ProtocolError
from asyncfed.core.types import Work
from asyncfed.problems.linear import Linear
from asyncfed.problems.protocol import Array, Initialisation


class HeldOut:
    """A `Problem` that can be measured but not trained: `test` holds the server's own rows, as a single client.

    `num_examples` is what the clients said of themselves; their objective is unknown here, so the one that is measured
    is that of the held-out rows.
    """

    def __init__(self, test: Linear, num_examples: Sequence[int]) -> None:
        self._test = test
        self.num_examples = np.array(num_examples, np.int64)
        self.num_clients = len(self.num_examples)
        self.num_params = test.num_params
        self.dtype = test.dtype

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        return self._test.init(seed, client, how)

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        measured = self._test.evaluate(params, threads)
        del measured["first_client_loss"]  # there is no first client here
        return measured

    def fingerprint(self) -> str:
        return sha256(f"{self._test.fingerprint()} {self.num_examples.tolist()}".encode()).hexdigest()

    def optimum(self) -> None:
        """Not known: the data are with the clients."""
        return

    def local_train(self, params: Array, client: int, work: Work, key: int) -> NoReturn:
        raise self._not_here()

    def local_train_many(self, *arguments: Any, **more: Any) -> NoReturn:
        raise self._not_here()

    def local_path_moments(self, *arguments: Any, **more: Any) -> NoReturn:
        raise self._not_here()

    def client_losses(self, params: Array, threads: int = 1) -> NoReturn:
        raise self._not_here()

    def client_loss(self, params: Array, client: int) -> NoReturn:
        raise self._not_here()

    def gradient(self, params: Array, client: int) -> NoReturn:
        raise self._not_here()

    def _not_here(self) -> ProtocolError:
        return ProtocolError("the clients' data are not on the server, so nothing can be computed from them here.")
