"""Colluding: all liars send the identical vector, in a direction they agreed on.

Sends: a direction drawn once for the run, as long as the coalition's honest changes are.
Equation: lie = scale * |mean of the liars' honest changes| * u, u a unit vector that all liars know.
Knows: the data of all liars and a common secret; a real coalition that talks to each other can do this.
Paper: in the spirit of Fang, Cao, Jia & Gong, "Local Model Poisoning Attacks to Byzantine-Robust Federated Learning",
USENIX Security 2020, whose liars push the model along one agreed direction; theirs is computed against a rule, ours
drawn.
Aims at: Krum, geometric median and all that look for vectors near each other: the liars' have distance 0. The model
is pushed the same way at every merge, so that small steps add up where noise would cancel.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from asyncfed.attacks.protocol import Knowledge, LiarView, Lying
from asyncfed.attacks.settings import require_positive
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class Colluding(Lying, Config, tag_field="kind", tag="colluding"):
    """Sends a direction on which all liars agree, with the length of their mean honest change.

        lie = scale * |mean| * u

    Args:
        scale: how many times as long as the mean, above 0.

    >>> Colluding(scale=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.scale is 0.0; it must be a positive number.
    """

    scale: float = 1.0
    knows: ClassVar[Knowledge] = "coalition"

    def __post_init__(self) -> None:
        require_positive("attack.scale", self.scale)

    def lie(self, view: LiarView) -> Array:
        """scale * |mean| * u."""
        from asyncfed.kernels.keyed_normals import keyed_normals  # loads scipy

        mean = view.coalition().mean(axis=0, dtype=np.float64)
        direction = keyed_normals(view.secret, mean.size)
        length = self.scale * np.sqrt(np.sum(mean * mean)) / np.sqrt(np.sum(direction * direction))
        lie: Array = (length * direction).astype(view.change.dtype)
        return lie
