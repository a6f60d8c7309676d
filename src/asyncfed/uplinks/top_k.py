"""TopK: the largest entries of a change, as packed indices and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.record import UNSET, Config, leave_out
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, take
from asyncfed.uplinks.index_formats import index_bytes, pack_indices, unpack_indices
from asyncfed.uplinks.number_formats import Format, narrow, rounding_share, widen, wire_bytes, wire_type
from asyncfed.uplinks.sparsity import check_fraction, count_entries


@register("uplink")
class TopK(Config, tag_field="kind", tag="top_k"):
    """The k entries of largest size; the others count as zero. Equal sizes: the lower index first.

        C(v)_j = v_j  if |v_j| is among the k largest, else 0

    A message is k values, and which entries they are of: a bit an entry, or the code of Elias and Fano, whichever is
    shorter (at 1 %, 8.6 bits an index). What is left out is forgotten: wrap it in `ErrorFeedback` to send it later. NaN
    counts as larger than infinity, so that both are sent and found.

    Args:
        fraction: k as a share of the number of parameters, above 0 and at most 1; at least 1 entry is sent.
        values: what values are sent as: "float32", "bfloat16", "float16", or "same", the model's type, which is also
            what is meant if it is left out.

    >>> TopK(fraction=0.01).size(num_params=1000, itemsize=8)
    91
    """

    fraction: float = 0.01
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
        """Bytes of k indices and k values."""
        k = self.count(num_params)
        return index_bytes(k, num_params) + k * wire_bytes(self.values, itemsize)

    def contraction(self, num_params: int) -> float | None:
        """δ = (k / d) (1 - u²), where u is the rounding of values: 0 for "same".

        The k largest squares are at least k / d of all; a share s of |v|² that is sent leaves (1 - s) + u² s, which
        falls with s. Attained, for "same", where all entries have the same size. None for float16: see `Cast`.
        """
        rounding = rounding_share(self.values)
        return None if rounding is None else self.count(num_params) / num_params * (1.0 - rounding**2)

    def variance(self, num_params: int) -> float | None:
        """None: what is left out is always the smallest. 0 if nothing is left out."""
        return 0.0 if self.count(num_params) == num_params and self.values is UNSET else None

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """The k largest, in order of index."""
        from asyncfed.kernels.arrays import plain
        from asyncfed.kernels.largest_entries import largest_entries

        indices = largest_entries(plain(change), self.count(change.size))
        return {"indices": pack_indices(indices, change.size), "values": narrow(change[indices], self.values)}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The change with zeros where nothing was sent."""
        k = self.count(num_params)
        indices = unpack_indices(message, "indices", k, num_params)
        values = take(message, "values", (k,), wire_type(self.values, dtype))
        change = np.zeros(num_params, dtype)
        change[indices] = widen(values, self.values, dtype)
        return change
