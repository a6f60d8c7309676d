"""Sign flip: liars send the opposite of what they learnt.

Sends: the liar's honest change, turned around and multiplied.
Equation: lie = -scale * change.
Knows: its own data and the model it was sent; a real client can do this.
Paper: Li, Xu, Chen, Giannakis & Ling, "RSA: Byzantine-Robust Stochastic Aggregation Methods for Distributed Learning
from Heterogeneous Datasets", AAAI 2019, among many.
Aims at: the mean, which a few long changes turn around. A large scale is seen by its length; with scale 1 the length
is honest and only the direction is not.
"""

from __future__ import annotations

from asyncfed.attacks.protocol import LiarView, Lying
from asyncfed.attacks.settings import require_positive
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class SignFlip(Lying, Config, tag_field="kind", tag="sign_flip"):
    """Sends the opposite of the honest change, multiplied.

        lie = -scale * change

    Args:
        scale: how many times as long as the honest change, above 0.

    >>> SignFlip(scale=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.scale is 0.0; it must be a positive number.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        require_positive("attack.scale", self.scale)

    def lie(self, view: LiarView) -> Array:
        """-scale * change."""
        return -self.scale * view.change
