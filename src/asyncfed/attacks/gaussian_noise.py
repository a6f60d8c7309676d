"""Gaussian noise: liars send random numbers.

Sends: independent normal numbers in place of the change, new ones for every ticket.
Equation: lie = std * rms(change) * n, n from N(0, I), rms(v) = |v| / sqrt(p); or lie = std * n with `relative =
false`.
Knows: its own data and the model it was sent; a real client can do this.
Paper: Blanchard, El Mhamdi, Guerraoui & Stainer, "Machine Learning with Adversaries: Byzantine Tolerant Gradient
Descent", NeurIPS 2017 (the "Gaussian Byzantine").
Aims at: the mean. Long noise is seen by its length; noise as long as an honest change only slows learning down.
"""

from __future__ import annotations

import numpy as np

from asyncfed.attacks.protocol import LiarView, Lying
from asyncfed.attacks.settings import require_positive
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class GaussianNoise(Lying, Config, tag_field="kind", tag="gaussian_noise"):
    """Sends normal noise in place of the change, new for every ticket.

        lie = std * rms(change) * n,    n from N(0, I)

    Args:
        std: the standard deviation of a number, above 0; as a multiple of the honest change's root mean square, or as
            it is.
        relative: whether `std` is a multiple.

    >>> GaussianNoise(std=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.std is 0.0; it must be a positive number.
    """

    std: float = 10.0
    relative: bool = True

    def __post_init__(self) -> None:
        require_positive("attack.std", self.std)

    def lie(self, view: LiarView) -> Array:
        """std * rms(change) * n, or std * n."""
        from asyncfed.kernels.keyed_normals import keyed_normals  # loads scipy

        rms = float(np.sqrt(np.mean(np.square(view.change, dtype=np.float64)))) if self.relative else 1.0
        return (self.std * rms * keyed_normals(view.key, view.change.size)).astype(view.change.dtype)
