"""MovedSince: how far, and in which direction, the model has moved since the start of each arrival."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, Probe, ServerRule
from asyncfed.rules.work_checks import refuse_settings
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix


@register("rule")
class MovedSince(WrappingRule, Config, tag_field="kind", tag="moved_since"):
    """Measures arrivals against the move of the model since their download; merges by the wrapped rule.

        moved_norm = |x - w_base|,   change_norm = |w_i - w_base|,   moved_cosine = cos(x - w_base, w_i - w_base)

    x is the model when the report arrives, w_base the one its client downloaded. The cosine is 1 if the model has not
    moved, and 0 if it has, but the client's has not. All three are in the journal, for a strategy to decide by. There
    is no memory: the server keeps w_base of every ticket that is out anyway.

    Args:
        rule: how arrivals become the next model.

    >>> MovedSince().rule
    Mean()
    """

    rule: ServerRule = Mean()

    def check(self, work: Work) -> None:
        """Clients have to start from the server's model."""
        refuse_settings("MovedSince", work, start="it measures what the server's model moved since the start")
        self.rule.check(work)

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """The two lengths and the cosine."""
        moved = params.astype(np.float64) - arrival.start
        change = arrival.model.astype(np.float64) - arrival.start
        moved_norm, change_norm = float(np.linalg.norm(moved)), float(np.linalg.norm(change))
        cosine = 1.0 if moved_norm == 0.0 else 0.0
        if moved_norm > 0.0 and change_norm > 0.0:  # each divided first: the product of two small lengths may be 0
            cosine = float(np.clip((moved / moved_norm) @ (change / change_norm), -1.0, 1.0))
        measured = super().measure(memory, params, arrival, probe)
        return {**measured, "moved_norm": moved_norm, "change_norm": change_norm, "moved_cosine": cosine}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's."""
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, arrivals, merge, key)
        return merged, with_prefix(wrapped), info
