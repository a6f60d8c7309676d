"""Whole: the change itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, take


@register("uplink")
class Whole(Config, tag_field="kind", tag="whole"):
    """The identity: the change, sent as it is.

        C(v) = v

    Inside another uplink it sends all of a change. A `Work` whose uplinks are all `Whole` is the work without uplinks:
    the client sends its model, since `start + (model - start)` may differ from the model in its last bit.

    >>> from asyncfed.core.types import Work
    >>> Work(uplink=(Whole(),)) == Work()
    True
    """

    remembers = False
    sends_whole = True  # a vector as long as the change, so that messages can be added up
    is_identity = True

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of the change."""
        return num_params * itemsize

    def contraction(self, num_params: int) -> float:
        """δ = 1: nothing is left out."""
        return 1.0

    def variance(self, num_params: int) -> float:
        """ω = 0: nothing is drawn."""
        return 0.0

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """The change."""
        return {"change": change}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The change."""
        return take(message, "change", (num_params,), dtype)
