"""Constant update: liars always send the same vector.

Sends: a fixed vector, whatever was learnt: all numbers alike, or signs drawn once for the run and common to all
liars.
Equation: lie = value * 1, or lie = value * s with s_j = ±1.
Knows: how many numbers the model has; a real client can do this.
Paper: Li, Xu, Chen, Giannakis & Ling, "RSA: Byzantine-Robust Stochastic Aggregation Methods for Distributed Learning
from Heterogeneous Datasets", AAAI 2019 (the "same-value" attack).
Aims at: the mean, and rules that count votes: liars that agree to the last bit look like a majority of like minds.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from asyncfed.attacks.protocol import LiarView, Lying
from asyncfed.attacks.settings import require_finite
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class ConstantUpdate(Lying, Config, tag_field="kind", tag="constant"):
    """Sends the same vector in every ticket.

        lie = value * 1,    or    lie = value * s,  s_j = ±1

    Args:
        value: the number, or its size; finite.
        direction: "ones": all numbers are `value`; "signs": their signs are drawn once for the run, the same for all
            liars.

    >>> ConstantUpdate(value=float("nan"))
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.value is nan; it must be a finite number.
    """

    value: float = 1.0
    direction: Literal["ones", "signs"] = "ones"

    def __post_init__(self) -> None:
        require_finite("attack.value", self.value)

    def lie(self, view: LiarView) -> Array:
        """value * 1, or value * s."""
        from asyncfed.kernels.keyed_normals import keyed_uniforms  # loads scipy

        same = np.full_like(view.change, self.value)
        if self.direction == "ones":
            return same
        signs: Array = np.where(keyed_uniforms(view.secret, same.size) < 0.5, -same, same)
        return signs
