"""LyingShard: a live client that lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from asyncfed.attacks.coalition import Coalition
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Array, ClientShard, MeasuresLoss, MeasuresRowLosses


class LyingShard:
    """A `ClientShard` that lies, to the last bit as `LyingProblem` does. It can be pickled if its shards can.

    Args:
        client: the liar's number.
        shards: the parts of the problem that it has, by client: its own, and those of others whose data it uses.
        coalition: who lies, and how.
        poisoned: its own part with the rows it lies with, of an attack on rows; None otherwise.
    """

    def __init__(
        self, client: int, shards: Mapping[int, ClientShard], coalition: Coalition, poisoned: ClientShard | None = None
    ) -> None:
        self.client = client
        self.shards = dict(shards)
        self.coalition = coalition
        self.poisoned = poisoned

    @property
    def num_examples(self) -> int:
        """The client's rows."""
        return self.shards[self.client].num_examples

    def train(
        self,
        params: Array,
        work: Work,
        key: int,
        correction: Array | None = None,
        steps_done: Array | None = None,
    ) -> Array:
        """What the liar sends."""
        lies = self.coalition.lies(self.client, key)
        shard = self.poisoned if lies and self.poisoned is not None else self.shards[self.client]
        trained = shard.train(params, work, key, correction, steps_done)
        if not lies:
            return trained
        start = np.asarray(params).astype(trained.dtype)
        return self.coalition.answer(start, trained, self.client, work, key, self._train)

    def _train(self, start: Array, clients: Sequence[int], work: Work, keys: Sequence[int]) -> Array:
        jobs = zip(clients, keys, strict=True)
        return np.array([self.shards[client].train(start.copy(), work, key) for client, key in jobs])

    def delay_factor(self, key: int) -> float:
        """How many times as long as it takes the liar makes this ticket last."""
        return self.coalition.description.attack.delay_factor(key)

    def loss(self, params: Array) -> float:
        """The client's mean loss on its true rows."""
        own = self.shards[self.client]
        if not isinstance(own, MeasuresLoss):
            raise TypeError(f"{type(own).__name__} has no `loss(params)`.")
        return own.loss(params)

    def row_losses(self, params: Array) -> Array:
        """The loss of each of the client's true rows."""
        own = self.shards[self.client]
        if not isinstance(own, MeasuresRowLosses):
            raise TypeError(f"{type(own).__name__} has no `row_losses(params)`.")
        return own.row_losses(params)
