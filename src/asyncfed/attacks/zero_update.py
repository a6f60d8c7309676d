"""Zero update: liars send the model back as they got it.

Sends: no change at all.
Equation: lie = 0.
Knows: nothing; a real client that saves its battery does this.
Paper: Fraboni, Vidal & Lorenzi, "Free-rider Attacks on Model Aggregation in Federated Learning", AISTATS 2021 (the
plain free-rider).
Aims at: time. A mean moves more slowly; a server that merges on arrival is drawn back to old models if it merges
models. Rules that choose the vector nearest to others may choose it, for it is near everything once changes are
small.
"""

from __future__ import annotations

import numpy as np

from asyncfed.attacks.protocol import LiarView, Lying
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class ZeroUpdate(Lying, Config, tag_field="kind", tag="zero_update"):
    """Sends the model back as it came.

    lie = 0
    """

    def lie(self, view: LiarView) -> Array:
        """0."""
        return np.zeros_like(view.change)
