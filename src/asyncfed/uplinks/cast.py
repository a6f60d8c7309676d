"""Cast: all entries, in fewer bytes each."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, take
from asyncfed.uplinks.number_formats import Narrow, narrow, rounding_share, widen, wire_bytes, wire_type


@register("uplink")
class Cast(Config, tag_field="kind", tag="cast"):
    """Every entry, rounded to the nearest number of a shorter format, ties to even.

        C(v)_j = round(v_j)

    A finite entry beyond the format's range is sent as its largest number, 65504 for float16; infinity and NaN stay,
    and are found by the server. bfloat16 has the range of float32 and 8 significant bits; float16 has 11, but loses
    what is below 6e-8 and rounds coarsely below 6e-5, which changes often are.

    Args:
        to: "bfloat16", "float16" or "float32" (for models in double precision).

    >>> Cast(to="bfloat16").size(num_params=1000, itemsize=8)
    2000
    """

    to: Narrow = "bfloat16"
    remembers = False

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of all entries."""
        return num_params * wire_bytes(self.to, itemsize)

    def contraction(self, num_params: int) -> float | None:
        """δ = 1 - u², u = 2**-8 for bfloat16 and 2**-24 for float32: each entry is off by at most the share u of it, if
        it is zero or at least 1.2e-38. None for float16, which may lose a small change altogether."""
        rounding = rounding_share(self.to)
        return None if rounding is None else 1.0 - rounding**2

    def variance(self, num_params: int) -> float | None:
        """None: rounding to the nearest is biased."""
        return None

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """The entries, rounded."""
        return {"entries": narrow(change, self.to)}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The entries, in the model's type."""
        return widen(take(message, "entries", (num_params,), wire_type(self.to, dtype)), self.to, dtype)
