"""TrustedDistance: how far each arriving change is from that of trusted rows, which the server computes itself."""

from __future__ import annotations

import numpy as np

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, Probe, ServerRule
from asyncfed.rules.trusted_change import TrustedChange, TrustedClient


@register("rule")
class TrustedDistance(TrustedChange, Config, tag_field="kind", tag="trusted_distance"):
    """Measures arrivals against the change that trusted rows would bring; merges by the wrapped rule.

        g_s = train(trusted rows, from x) - x     with the work of the update that arrives, x being the present model
        distance = |g_i - g_s|,   trusted_norm = |g_s|     reported with each arrival, for a strategy to decide by

    The server trains on the trusted rows itself. They are its own, which the experiment's `trusted` names, or those of
    a client whose data it holds, as it does in simulations and in live runs on one machine. g_s is kept for `refresh`
    versions, and is then up to `refresh - 1` versions old; its time and energy are not counted. The memory is g_s, of
    which version it is, and how many versions there were.

    Args:
        trusted_client: whose data the server trusts and holds, 0 or more; "server" for rows of its own.
        refresh: after how many versions g_s is computed anew, 1 or more.
        rule: how arrivals become the next model.

    >>> TrustedDistance(refresh=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.refresh is 0; it must be at least 1 version.
    """

    trusted_client: TrustedClient = 0
    refresh: int = 1
    rule: ServerRule = Mean()

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """The distance and the length of g_s, which is computed first if it is missing or too old."""
        trusted = self.trusted_change(memory, params, arrival, probe)
        distance = float(np.linalg.norm(arrival.change - trusted))
        measured = super().measure(memory, params, arrival, probe)
        return {**measured, "distance": distance, "trusted_norm": float(np.linalg.norm(trusted))}
