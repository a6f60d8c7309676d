"""TrustedDistance: how far each arriving change is from that of a trusted client, which the server computes itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, Probe, ServerRule
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix


@register("rule")
class TrustedDistance(WrappingRule, Config, tag_field="kind", tag="trusted_distance"):
    """Measures arrivals against the change that the trusted client's data would bring; merges by the wrapped rule.

        g_s = train(trusted client, from x) - x     with the work of the update that arrives, x being the present model
        distance = |g_i - g_s|,   trusted_norm = |g_s|     reported with each arrival, for a strategy to decide by

    The server trains on the trusted client's rows, so it must hold them: in simulations, and in live runs on one
    machine. g_s is kept for `refresh` versions, and is then up to `refresh - 1` versions old; its time and energy are
    not counted. The memory is g_s, of which version it is, and how many versions there were.

    Args:
        trusted_client: whose data the server trusts and holds, 0 or more.
        refresh: after how many versions g_s is computed anew, 1 or more.
        rule: how arrivals become the next model.

    >>> TrustedDistance(refresh=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.refresh is 0; it must be at least 1 version.
    """

    trusted_client: int = 0
    refresh: int = 1
    rule: ServerRule = Mean()

    def __post_init__(self) -> None:
        if self.refresh < 1:
            raise ConfigError(f"rule.refresh is {self.refresh}; it must be at least 1 version.")
        if self.trusted_client < 0:
            raise ConfigError(f"rule.trusted_client is {self.trusted_client}; clients are numbered from 0.")

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No g_s yet, and the wrapped rule's memory."""
        versions = np.array([0, -1], np.int64)  # how many there were, and of which one g_s is
        return {"trusted": np.zeros_like(params), "versions": versions, **super().init(params, num_clients)}

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """The distance and the length of g_s, which is computed first if it is missing or too old."""
        version, computed_at = memory["versions"].tolist()
        if computed_at < 0 or version - computed_at >= self.refresh:
            memory["trusted"][:] = probe(params, self.trusted_client, arrival.work, version) - params
            memory["versions"][1] = version
        trusted = memory["trusted"].astype(np.float64)
        distance = float(np.linalg.norm(arrival.change - trusted))
        measured = super().measure(memory, params, arrival, probe)
        return {**measured, "distance": distance, "trusted_norm": float(np.linalg.norm(trusted))}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's."""
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, arrivals, merge, key)
        memory["versions"][0] += 1
        return merged, {"trusted": memory["trusted"], "versions": memory["versions"], **with_prefix(wrapped)}, info
