"""Clip: the change, shortened to a given length."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, take
from asyncfed.uplinks.norms import check_norm, clip_to_norm, exceeds, l2_norm


@register("uplink")
class Clip(Config, tag_field="kind", tag="clip"):
    """The client shortens its change to the L2 norm C, and sends it whole; the server refuses a longer one.

        C(v) = v * min(1, C / |v|)

    With a rule such as `Noised` at the server this bounds what one update can tell about its client. As the last of
    several uplinks it bounds what the server sees; codecs that can lengthen a change belong before it.

    Args:
        norm: C, above 0.

    >>> Clip(norm=0.5).size(num_params=1000, itemsize=4)
    4000
    """

    norm: float = 1.0
    remembers = False
    sends_whole = True  # a vector as long as the change, so that messages can be added up

    def __post_init__(self) -> None:
        check_norm("uplink.norm", self.norm)

    @property
    def change_bound(self) -> float:
        """The longest change that the server accepts."""
        return self.norm

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of the whole change."""
        return num_params * itemsize

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """The change, clipped."""
        return {"change": clip_to_norm(change, self.norm)}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The change, if it is one and not too long. What is not finite is left to the checks that all updates pass."""
        change = take(message, "change", (num_params,), dtype)
        if exceeds(change, self.norm):
            raise ValueError(f"its norm is {l2_norm(change):.6g}; it was to be clipped to {self.norm:g}")
        return change
