"""RandK: entries drawn at random; which ones, the server works out from a seed."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

from asyncfed.core.record import UNSET, Config, leave_out
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, take
from asyncfed.uplinks.number_formats import Format, narrow, rounding_share, widen, wire_bytes, wire_type
from asyncfed.uplinks.sparsity import check_fraction, count_entries

SEED = np.dtype("<u8")


@register("uplink")
class RandK(Config, tag_field="kind", tag="rand_k"):
    """k entries drawn without replacement, all sets of k equally likely; the others count as zero.

        C(v)_j = scale * v_j  if j was drawn, else 0;     scale = d / k if scaled, else 1

    Scaled it is unbiased, and noisy: ω = d/k - 1. Inside `ErrorFeedback` use it without the scale. A message is a seed
    of 8 bytes, from which the server draws the same indices, and k values.

    Args:
        fraction: k as a share of the number of parameters, above 0 and at most 1; at least 1 entry is sent.
        scaled: whether entries are multiplied by d / k, after they arrived.
        values: what values are sent as: "float32", "bfloat16", "float16", or "same", the model's type, which is also
            what is meant if it is left out.

    >>> RandK(fraction=0.01).size(num_params=1000, itemsize=8)
    88
    >>> RandK(fraction=0.25).variance(num_params=1000), RandK(fraction=0.25, scaled=False).contraction(1000)
    (3.0, 0.25)
    """

    fraction: float = 0.01
    scaled: bool = True
    values: Format = UNSET
    remembers = False

    def __post_init__(self) -> None:
        check_fraction(self.fraction)
        if self.values == "same":
            leave_out(self, "values")

    def count(self, num_params: int) -> int:
        """k for so many parameters: rounded up."""
        return count_entries(self.fraction, num_params)

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of a seed and k values."""
        return SEED.itemsize + self.count(num_params) * wire_bytes(self.values, itemsize)

    def contraction(self, num_params: int) -> float | None:
        """Without scale δ = (k / d) (1 - u²): each square is left out with chance 1 - k/d, u is the rounding of values.

        With scale δ = 1 - ω where ω is below 1, that is where more than half of the entries are sent.
        """
        rounding = rounding_share(self.values)
        if not self.scaled:
            return None if rounding is None else self.count(num_params) / num_params * (1.0 - rounding**2)
        variance = self.variance(num_params)
        return None if variance is None or variance >= 1.0 else 1.0 - variance

    def variance(self, num_params: int) -> float | None:
        """With scale ω = d/k - 1: E (d/k)² v_j² k/d - v_j², exactly. Without it, or with rounded values, None."""
        k = self.count(num_params)
        return num_params / k - 1.0 if self.values is UNSET and (self.scaled or k == num_params) else None

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """A seed, and the entries that it draws. The seed is a digest of the key, which it does not give away."""
        seed = np.frombuffer(sha256(key.to_bytes(8, "little")).digest()[:8], SEED).copy()
        values = change[self._drawn(seed, change.size)]
        if not np.isfinite(change).all():  # also where no such entry was drawn, so that the server finds it
            values = np.full_like(values, np.nan)
        return {"seed": seed, "values": narrow(values, self.values)}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The change with zeros where nothing was sent."""
        k = self.count(num_params)
        seed = take(message, "seed", (1,), SEED)
        values = widen(take(message, "values", (k,), wire_type(self.values, dtype)), self.values, dtype)
        change = np.zeros(num_params, dtype)
        with np.errstate(over="ignore"):  # what becomes infinite is found by the checks that all updates pass
            change[self._drawn(seed, num_params)] = values * dtype.type(num_params / k) if self.scaled else values
        return change

    def _drawn(self, seed: np.ndarray, num_params: int) -> np.ndarray:
        from asyncfed.kernels.random_subset import random_subset

        return random_subset(np.uint64(seed[0]), num_params, self.count(num_params))
