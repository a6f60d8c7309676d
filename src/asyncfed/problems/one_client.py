"""What shards share: a problem of one client, which does the work."""

from __future__ import annotations

from asyncfed.core.types import Work
from asyncfed.problems.protocol import Array, Problem, one_job
from asyncfed.problems.row_losses import client_row_losses


class OneClient:
    """A `ClientShard` by a problem whose only client it is. Shards inherit it and make `_alone`."""

    _alone: Problem

    @property
    def num_examples(self) -> int:
        """The client's rows."""
        return int(self._alone.num_examples[0])

    @property
    def num_params(self) -> int:
        """How many numbers the params are."""
        return self._alone.num_params

    def loss(self, params: Array) -> float:
        """The client's mean loss with any penalty."""
        return self._alone.client_loss(params, 0)

    def row_losses(self, params: Array) -> Array:
        """The loss of each row, without penalty."""
        return client_row_losses(self._alone, params, 0)

    def train(
        self,
        params: Array,
        work: Work,
        key: int,
        correction: Array | None = None,
        steps_done: Array | None = None,
    ) -> Array:
        """The params after the work, all draws made from `key`."""
        trained: Array = self._alone.local_train_many(one_job(params, work, key, correction, steps_done))[0]
        return trained
