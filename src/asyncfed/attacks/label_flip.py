"""Label flip: liars train honestly, on false targets.

Sends: the change that the client's own rows bring once their targets are turned around.
Equation: labels y -> -y; classes y -> K - 1 - y; numbers y -> 2 m - y, m the mean of the liar's own targets.
Knows: its own data and the model it was sent; a real client can do this, and one with broken labels does.
Paper: Tolpegin, Truex, Gursoy & Liu, "Data Poisoning Attacks Against Federated Learning Systems", ESORICS 2020; Fang,
Cao, Jia & Gong, "Local Model Poisoning Attacks to Byzantine-Robust Federated Learning", USENIX Security 2020.
Aims at: every rule that judges by length: the change is as long as an honest one and points to a false optimum.
"""

from __future__ import annotations

from asyncfed.attacks.protocol import LiarView, Lying, Targets
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class LabelFlip(Lying, Config, tag_field="kind", tag="label_flip"):
    """Trains on targets that are turned around, and sends what that brings.

        labels: y -> -y        classes: y -> K - 1 - y        numbers: y -> 2 m - y,  m the mean of the liar's own

    With an odd number of classes, the middle one stays as it is.
    """

    poisons_rows = True

    def poison(self, x: Array, y: Array, targets: Targets, key: int) -> tuple[Array, Array]:
        """The rows with their targets turned around."""
        if targets.kind == "labels":
            return x, -y
        if targets.kind == "classes":
            return x, (targets.num_classes - 1 - y).astype(y.dtype)
        return x, (2.0 * y.mean(axis=0) - y).astype(y.dtype)

    def lie(self, view: LiarView) -> Array:
        """The change, which is that of false rows."""
        return view.change
