"""Inner product manipulation: liars send a short step against the mean of what they learnt.

Sends: the mean of the coalition's honest changes, turned around and multiplied.
Equation: lie = -epsilon * mean of the liars' honest changes from the same model.
Knows: the data of all liars; a real coalition that talks to each other can do this.
Paper: Xie, Koyejo & Gupta, "Fall of Empires: Breaking Byzantine-tolerant SGD by Inner Product Manipulation", UAI
2019.
Aims at: Krum, median and all that bound the distance but not the angle: with a small epsilon the lie is near the
honest changes, and what is merged may still have a negative inner product with the gradient. With a large one it is a
sign flip on which all liars agree.
"""

from __future__ import annotations

from typing import ClassVar

from asyncfed.attacks.protocol import Knowledge, LiarView, Lying
from asyncfed.attacks.settings import require_positive
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class InnerProduct(Lying, Config, tag_field="kind", tag="inner_product"):
    """Sends a step against the mean of the liars' honest changes.

        lie = -epsilon * mean

    Args:
        epsilon: how long the step is, in lengths of the mean, above 0.

    >>> InnerProduct(epsilon=-0.5)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.epsilon is -0.5; it must be a positive number.
    """

    epsilon: float = 0.5
    knows: ClassVar[Knowledge] = "coalition"

    def __post_init__(self) -> None:
        require_positive("attack.epsilon", self.epsilon)

    def lie(self, view: LiarView) -> Array:
        """-epsilon * mean."""
        lie: Array = -self.epsilon * view.coalition().mean(axis=0)
        return lie
