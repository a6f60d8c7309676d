"""Models that trainings start from, each put into the cluster once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from asyncfed.problems.protocol import Array

INLINE_BYTES = 100_000
"""A smaller model travels in the call itself, as Ray does with small arguments: storing it would cost more."""

KEPT_VERSIONS = 4
"""Models that an actor keeps at hand."""


class SharedModel(NamedTuple):
    """A model in Ray's object store; in a tuple, so that Ray does not fetch it before the call.

    Args:
        name: of the object, unique in the cluster.
        reference: Ray's.
    """

    name: str
    reference: Any


class SentVersions:
    """Where each model is that was sent: the same array is the same version, as long as anybody refers to it.

    Args:
        ray: the package.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._shared: dict[int, tuple[ref[Array], SharedModel]] = {}
        self.stored = 0
        """How many models were put into the object store."""

    def send(self, model: Array) -> Array | SharedModel:
        """What a call is handed in place of the model."""
        if model.nbytes < INLINE_BYTES:
            return model
        known = self._shared.get(id(model))
        if known is not None and known[0]() is model:
            return known[1]
        reference = self._ray.put(model)
        shared = SharedModel(reference.hex(), reference)
        # A model that nobody refers to any more is given free here, and so in the object store.
        self._shared[id(model)] = ref(model, self._forget), shared
        self.stored += 1
        return shared

    def clear(self) -> None:
        """Give all of them free."""
        self._shared.clear()

    def _forget(self, gone: ref[Array]) -> None:
        self._shared = {name: entry for name, entry in self._shared.items() if entry[0] is not gone}


_at_hand: OrderedDict[str, Array] = OrderedDict()
"""In an actor: the models it saw last."""


def received(models: Sequence[Array | SharedModel]) -> Array:
    """In an actor: the models as rows of an array."""
    return np.stack([_fetch(model) if isinstance(model, SharedModel) else model for model in models])


def _fetch(model: SharedModel) -> Array:
    if model.name not in _at_hand:
        import ray

        _at_hand[model.name] = ray.get(model.reference)
        if len(_at_hand) > KEPT_VERSIONS:
            _at_hand.popitem(last=False)
    _at_hand.move_to_end(model.name)
    return _at_hand[model.name]
