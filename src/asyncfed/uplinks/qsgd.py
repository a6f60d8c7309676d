"""QSGD: each entry as a sign and one of a few levels, rounded at random."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.uplinks.buckets import bucket_count, bucket_size, check_bucket
from asyncfed.uplinks.chain import Arrays, take

MOST_LEVELS = 2**15 - 1


@register("uplink")
class QSGD(Config, tag_field="kind", tag="qsgd"):
    """Each entry becomes one of 2s + 1 multiples of its bucket's norm, up or down at random so that the mean is right:

        C(v)_j = |v| * sign(v_j) * l_j / s,     l_j = floor(s |v_j| / |v| + u_j),     u_j uniform in [0, 1)

    A message is the norm of each bucket and ceil(log2(2s + 1)) bits an entry: 2 bits for s = 1, 4 for 7, 8 for 127. It
    is unbiased. Where an entry is not finite, so is the norm of its bucket, and the server finds it.

    Args:
        levels: s, 1 to 32767; one less than a power of two fills its bits.
        bucket: entries that share a norm; 0 for the whole change. Smaller buckets are more exact and take more norms.

    >>> QSGD(levels=7, bucket=128).size(num_params=1024, itemsize=4)
    544

    Alistarh, Grubic, Li, Tomioka & Vojnovic, "QSGD: Communication-Efficient SGD via Gradient Quantization and
    Encoding", NeurIPS 2017; norms there are of buckets too.
    """

    levels: int = 7
    bucket: int = 128
    remembers = False

    def __post_init__(self) -> None:
        if not 1 <= self.levels <= MOST_LEVELS:
            raise ConfigError(f"uplink.levels is {self.levels}; it must be between 1 and {MOST_LEVELS}.")
        check_bucket(self.bucket)

    @property
    def bits(self) -> int:
        """Bits of an entry."""
        return (2 * self.levels).bit_length()

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of the norms and of all levels."""
        return bucket_count(self.bucket, num_params) * itemsize + self._level_bytes(num_params)

    def contraction(self, num_params: int) -> float | None:
        """δ = 1 - ω where ω is below 1."""
        variance = self.variance(num_params)
        return None if variance >= 1.0 else 1.0 - variance

    def variance(self, num_params: int) -> float:
        """For n entries in a bucket: ω = √n / s - 1 if √n >= 2s, else n / (4 s²).

        With a_j = s |v_j| / |v|, the squared error is |v|²/s² Σ p_j (1 - p_j), p_j the fraction of a_j; Σ a_j² = s².
        As a function of a², p (1 - p) lies below h = a - a² up to a = 1/2 and h = 1/4 from there, which is concave: the
        sum is at most n h(s²/n). The first case is attained by entries of equal size, and is 1 below the paper's.
        """
        n, s = bucket_size(self.bucket, num_params), self.levels
        return sqrt(n) / s - 1.0 if sqrt(n) >= 2 * s else n / (4.0 * s * s)

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """Norms, rounded up to the model's type so that no level is above s, and packed levels."""
        from asyncfed.kernels.arrays import plain
        from asyncfed.kernels.quantisation import bucket_norms, write_levels

        bucket, change = bucket_size(self.bucket, change.size), plain(change)
        norms = round_up(bucket_norms(change, bucket), change.dtype)
        packed = np.empty(self._level_bytes(change.size), np.uint8)
        write_levels(change, norms, bucket, self.levels, self.bits, np.uint64(key), packed)
        return {"norms": norms, "levels": packed}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """Norm times level over s."""
        from asyncfed.kernels.arrays import plain
        from asyncfed.kernels.quantisation import read_levels

        norms = take(message, "norms", (bucket_count(self.bucket, num_params),), dtype)
        packed = take(message, "levels", (self._level_bytes(num_params),), np.dtype(np.uint8))
        if (norms < 0).any():
            raise ValueError("one of its norms is negative")
        change = np.empty(num_params, dtype)
        bucket = bucket_size(self.bucket, num_params)
        if not read_levels(plain(packed), plain(norms), bucket, self.levels, self.bits, change):
            raise ValueError(f"its levels must be within {self.levels} of zero")
        return change

    def _level_bytes(self, num_params: int) -> int:
        return (num_params * self.bits + 7) // 8


def round_up(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """In this type, no smaller than they were; the largest number where that would be infinite."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(dtype)
        rounded = np.where(rounded < values, np.nextafter(rounded, dtype.type(np.inf)), rounded)
    beyond = np.isinf(rounded) & np.isfinite(values)
    rounded[beyond] = np.finfo(dtype).max
    return rounded
