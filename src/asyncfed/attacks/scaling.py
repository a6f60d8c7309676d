"""Scaling: liars send what they learnt, many times over.

Sends: the liar's honest change, multiplied.
Equation: lie = factor * change.
Knows: its own data and the model it was sent; a real client can do this.
Paper: Bagdasaryan, Veit, Hua, Estrin & Shmatikov, "How To Backdoor Federated Learning", AISTATS 2020 (model
replacement: a client of weight w that multiplies its change by 1/w replaces the model by its own).
Aims at: the mean, in which the liar then counts for many. It is seen by its length.
"""

from __future__ import annotations

from asyncfed.attacks.protocol import LiarView, Lying
from asyncfed.attacks.settings import require_positive
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class Scaling(Lying, Config, tag_field="kind", tag="scaling"):
    """Sends the honest change, multiplied.

        lie = factor * change

    Args:
        factor: how many times as long as the honest change, above 0.

    >>> Scaling(factor=-1.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.factor is -1.0; it must be a positive number.
    """

    factor: float = 10.0

    def __post_init__(self) -> None:
        require_positive("attack.factor", self.factor)

    def lie(self, view: LiarView) -> Array:
        """factor * change."""
        return self.factor * view.change
