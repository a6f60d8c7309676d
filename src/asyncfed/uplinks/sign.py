"""Sign: one bit an entry, and a scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.uplinks.buckets import bucket_count, bucket_size, check_bucket
from asyncfed.uplinks.chain import Arrays, take


@register("uplink")
class Sign(Config, tag_field="kind", tag="sign"):
    """The sign of each entry, times the mean size of the entries of its bucket:

        C(v)_j = (Σ |v_i| / n) * sign(v_j),     sign(0) = 1

    A message is a bit an entry and a scale for each bucket. It is biased: use it inside `ErrorFeedback`. Where an entry
    is not finite, so is the scale of its bucket, and the server finds it.

    Args:
        bucket: n, the entries that share a scale; 0 for the whole change.

    >>> Sign().size(num_params=1000, itemsize=4)
    129

    Karimireddy, Rebjock, Stich & Jaggi, "Error Feedback Fixes SignSGD and other Gradient Compression Schemes", ICML
    2019.
    """

    bucket: int = 0
    remembers = False

    def __post_init__(self) -> None:
        check_bucket(self.bucket)

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of the bits and of the scales."""
        return (num_params + 7) // 8 + bucket_count(self.bucket, num_params) * itemsize

    def contraction(self, num_params: int) -> float:
        """δ = 1 / n: |C(v) - v|² = |v|² - |v|₁² / n in each bucket, and |v|₁ >= |v|. Attained by a single entry that
        is not zero; where all have the same size nothing is lost, and normal entries give 2 / π."""
        return 1.0 / bucket_size(self.bucket, num_params)

    def variance(self, num_params: int) -> float | None:
        """None: nothing is drawn. 0 where each entry has a scale of its own."""
        return 0.0 if bucket_size(self.bucket, num_params) == 1 else None

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """A set bit for 0 and above."""
        from asyncfed.kernels.arrays import plain
        from asyncfed.kernels.quantisation import bucket_mean_sizes

        scales = bucket_mean_sizes(plain(change), bucket_size(self.bucket, change.size)).astype(change.dtype)
        return {"scales": scales, "signs": np.packbits(change >= 0, bitorder="little")}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Plus or minus the scale."""
        from asyncfed.kernels.arrays import plain
        from asyncfed.kernels.quantisation import read_signs

        scales = take(message, "scales", (bucket_count(self.bucket, num_params),), dtype)
        signs = take(message, "signs", ((num_params + 7) // 8,), np.dtype(np.uint8))
        if (scales < 0).any():
            raise ValueError("one of its scales is negative")
        if num_params % 8 and signs[-1] >> (num_params % 8):
            raise ValueError(f"it has more than {num_params} signs")
        change = np.empty(num_params, dtype)
        read_signs(plain(signs), plain(scales), bucket_size(self.bucket, num_params), change)
        return change
