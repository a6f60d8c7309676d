"""Coalition: the liars of one run, with all they have in common, and the model that one of them answers with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from asyncfed.attacks.liars import Liars
from asyncfed.attacks.protocol import HonestChanges, LiarView
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Array

TrainModels = Callable[[Array, Sequence[int], Work, Sequence[int]], Array]
"""The models (k, p) that these clients honestly arrive at from one start with one work, each with a key of its own."""


@dataclass(frozen=True, eq=False)
class Coalition:
    """Who lies in a run, how, and what they share. It can be pickled.

    Args:
        description: what the experiment says.
        seed: the run's.
        num_clients: how many clients there are.
        first: the run's first model, shape (p,).
        members: the clients that lie, in rising order.
    """

    description: Liars
    seed: int
    num_clients: int
    first: Array
    members: tuple[int, ...]

    @property
    def secret(self) -> int:
        """What the liars' common draws are made from."""
        return purpose_key(self.seed, "liars' secret")

    def lies(self, client: int, key: int) -> bool:
        """Whether this client lies in the ticket that is trained with this key."""
        return client in self.members and self.description.attack.lies(key)

    def answer(self, start: Array, trained: Array, client: int, work: Work, key: int, train: TrainModels) -> Array:
        """The model that a liar sends.

        Args:
            start: the params that it was sent, shape (p,).
            trained: what it arrived at, shape (p,).
            client, work, key: of its ticket.
            train: what clients honestly arrive at.
        """
        change = trained - start
        start, first = _read_only(start), _read_only(self.first)
        changes = _honest_changes(train, purpose_key(self.seed, "coalition"))
        view = LiarView(
            *(start, _read_only(change), client, work, purpose_key(key, "lie"), self.secret),
            *(self.members, self.num_clients, first, changes),
        )
        sent = self.description.attack.lie(view)
        if sent is view.change:
            return trained  # to the last bit, which start + change may not be
        if sent.shape != start.shape:
            raise ConfigError(
                f"{type(self.description.attack).__name__}.lie gave an array of shape {sent.shape} for params of "
                f"shape {start.shape}; it must give the change that is sent. Correct the attack."
            )
        with np.errstate(over="ignore"):
            return (start + sent).astype(trained.dtype, copy=False)


def _honest_changes(train: TrainModels, purpose: int) -> HonestChanges:
    """Keys depend on the client alone, so that liars that were sent the same model agree on what each would send."""

    def changes(start: Array, clients: Sequence[int], work: Work) -> Array:
        return train(start, clients, work, [draw_key(purpose, client, 0) for client in clients]) - start

    return changes


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
