"""TrustedDirection: how well each arriving change points where trusted rows would go, and how long both are."""

from __future__ import annotations

from sys import float_info

import numpy as np

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, Probe, ServerRule
from asyncfed.rules.trusted_change import TrustedChange, TrustedClient


@register("rule")
class TrustedDirection(TrustedChange, Config, tag_field="kind", tag="trusted_direction"):
    """Measures the angle between arrivals and the change that trusted rows would bring; merges by the wrapped rule.

        v = train(trusted rows, from x) - x       with the work of the update that arrives, x being the present model
        cosine = <v, g_i> / (|v| |g_i|),   trusted_norm = |v|,   change_norm = |g_i|     reported with each arrival

    The cosine is 0 where v or g_i is 0. Rows, memory and cost are as for `trusted_distance`.

    Args:
        trusted_client: whose data the server trusts and holds, 0 or more; "server" for rows of its own.
        refresh: after how many versions v is computed anew, 1 or more.
        rule: how arrivals become the next model.

    >>> TrustedDirection(trusted_client="server").trains_on
    -1
    """

    trusted_client: TrustedClient = 0
    refresh: int = 1
    rule: ServerRule = Mean()

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """The three numbers; v is computed first if it is missing or too old."""
        v, trusted_norm = _direction(self.trusted_change(memory, params, arrival, probe))
        g, change_norm = _direction(arrival.change.astype(np.float64))
        measured = super().measure(memory, params, arrival, probe)
        return {**measured, "cosine": float(v @ g), "trusted_norm": trusted_norm, "change_norm": change_norm}


def _direction(vector: np.ndarray) -> tuple[np.ndarray, float]:
    """The vector with length 1, or 0, and its length, also where its square is beyond the largest float."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not largest > 0.0:
        return vector, 0.0
    scaled = vector / largest
    norm = float(np.linalg.norm(scaled))
    return scaled / norm, min(largest * norm, float_info.max)
