"""The server's side of a problem whose data are with the clients: the model, and held-out rows to evaluate it on."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NoReturn

import numpy as np

from asyncfed.core.errors import ConfigError, ProtocolError
from asyncfed.core.types import Work
from asyncfed.problems.param_shapes import shapes_of
from asyncfed.problems.protocol import Array, ClientShard, Initialisation, Problem
from asyncfed.problems.trusted_rows import TakesRows


class HeldOutProblem:
    """A `Problem` that can be evaluated but not trained: `test` holds the server's own rows, as a single client.

    `num_examples` is what the clients declared; their objective is unknown here, so the one that is evaluated is that
    of the held-out rows.
    """

    def __init__(self, test: Problem, num_examples: Sequence[int]) -> None:
        self._test = test
        self.num_examples = np.array(num_examples, np.int64)
        self.num_clients = len(self.num_examples)
        self.num_params = test.num_params
        self.dtype = test.dtype
        self.param_shapes = shapes_of(test)

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """The model's first parameters."""
        return self._test.init(seed, client, how)

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """The metrics of the held-out rows."""
        metrics = self._test.evaluate(params, threads)
        metrics.pop("first_client_loss", None)  # there is no first client here
        return metrics

    def fingerprint(self) -> str:
        """A digest of the held-out rows and of the clients' numbers of examples."""
        return sha256(f"{self._test.fingerprint()} {self.num_examples.tolist()}".encode()).hexdigest()

    def optimum(self) -> None:
        """Not known: the data are with the clients."""
        return

    holds_client_data = False
    """The clients' rows are not here, so that nothing can be trained on them."""

    def shard_of(self, x: Array, y: Array) -> ClientShard:
        """A client's part with rows of the server's own."""
        if not isinstance(self._test, TakesRows):
            raise ConfigError(
                f"{type(self._test).__name__} cannot be trained on rows of the server's own; give it `shard_of(x, y)`."
            )
        return self._test.shard_of(x, y)

    def local_train(self, params: Array, client: int, work: Work, key: int) -> NoReturn:
        """Refused: it needs the clients' data."""
        raise _needs_client_data()

    def local_train_many(self, *arguments: Any, **more: Any) -> NoReturn:
        """Refused: it needs the clients' data."""
        raise _needs_client_data()

    def local_path_moments(self, *arguments: Any, **more: Any) -> NoReturn:
        """Refused: it needs the clients' data."""
        raise _needs_client_data()

    def client_losses(self, params: Array, threads: int = 1) -> NoReturn:
        """Refused: it needs the clients' data."""
        raise _needs_client_data()

    def client_loss(self, params: Array, client: int) -> NoReturn:
        """Refused: it needs the clients' data."""
        raise _needs_client_data()

    def gradient(self, params: Array, client: int) -> NoReturn:
        """Refused: it needs the clients' data."""
        raise _needs_client_data()


def _needs_client_data() -> ProtocolError:
    return ProtocolError("the clients' data are not on the server, so nothing can be computed from them here.")
