"""LocalNoise: the client clips its change and adds noise, so that nobody else sees it as it is."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, take
from asyncfed.uplinks.norms import check_norm, clip_to_norm


@register("uplink")
class LocalNoise(Config, tag_field="kind", tag="local_noise"):
    """The client shortens its change to the L2 norm C and adds Gaussian noise, before anything leaves it:

        v * min(1, C / |v|) + z C N(0, I)

    Each upload is then a Gaussian mechanism of noise multiplier z for its client, whoever receives it and whatever
    becomes of it; u uploads are one of z / sqrt(u). The noise of a mean of K such changes is z C / sqrt(K), sqrt(K)
    times that of `Noised`: the price of showing it to nobody. Uplinks after it see the noised change only. A change
    that is not finite counts as zero, since noise could not hide that a training diverged.

    In simulations the noise comes from the key of client and ticket. In live runs the client draws the key itself, from
    its operating system, and keeps it.

    Args:
        clip: C, above 0: the longest change.
        multiplier: z, 0 (no noise, no protection) or more.

    >>> LocalNoise(clip=0.5, multiplier=2.0).size(num_params=1000, itemsize=4)
    4000

    Dwork & Roth, "The Algorithmic Foundations of Differential Privacy", 2014.
    """

    clip: float = 1.0
    multiplier: float = 1.0
    remembers = False
    sends_whole = True  # a vector as long as the change, so that messages can be added up
    draws_noise = True

    def __post_init__(self) -> None:
        check_norm("uplink.clip", self.clip)
        if not 0 <= self.multiplier < inf:
            raise ConfigError(f"uplink.multiplier is {self.multiplier}; it must be 0 or a positive number.")

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """No memory."""
        return {}

    def size(self, num_params: int, itemsize: int) -> int:
        """Bytes of the whole change."""
        return num_params * itemsize

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays, Arrays]:
        """The change, clipped and noised; noise is added in double precision, and the sum rounded once."""
        from asyncfed.kernels.noise_normals import noise_normals  # loads scipy

        if not self.multiplier:
            return {"change": clip_to_norm(change, self.clip)}, memory
        clipped = clip_to_norm(change, self.clip) if np.isfinite(change).all() else np.zeros_like(change)
        noise = self.multiplier * self.clip * noise_normals(key, change.size)
        return {"change": (clipped.astype(np.float64) + noise).astype(change.dtype)}, memory

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The noised change, which may be of any length."""
        return take(message, "change", (num_params,), dtype)
