"""TopK: the largest entries of a change, as indices and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, take

INDEX = np.dtype("<u4")


@register("uplink")
class TopK(Config, tag_field="kind", tag="top_k"):
    """The k entries of largest size; the others count as zero. Equal sizes: the lower index first.

        C(v)_j = v_j  if |v_j| is among the k largest, else 0

    A message is k indices of 4 bytes and k values. What is left out is forgotten: wrap it in `ErrorFeedback` to send it
    later.

    Args:
        fraction: k as a share of the number of parameters, above 0 and at most 1; at least 1 entry is sent.

    >>> TopK(fraction=0.01).size(num_params=1000, itemsize=8)
    120
    """

    fraction: float = 0.01
    remembers = False

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ConfigError(f"uplink.fraction is {self.fraction}; it must be above 0 and at most 1.")

    def count(self, num_params: int) -> int:
        """k for so many parameters: rounded up."""
        return min(num_params, max(1, int(np.ceil(self.fraction * num_params))))

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of k indices and k values."""
        return self.count(num_params) * (INDEX.itemsize + itemsize)

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """The k largest, in order of index."""
        order = np.argsort(-np.abs(change), kind="stable")
        indices = np.sort(order[: self.count(change.size)])
        return {"indices": indices.astype(INDEX), "values": change[indices]}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The change with zeros where nothing was sent."""
        k = self.count(num_params)
        indices, values = take(message, "indices", (k,), INDEX), take(message, "values", (k,), dtype)
        if k and (int(indices[-1]) >= num_params or np.any(indices[1:] <= indices[:-1])):
            raise ValueError(f"its indices must increase and be below {num_params}")
        change = np.zeros(num_params, dtype)
        change[indices] = values
        return change
