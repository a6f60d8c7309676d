"""What rules share that measure arrivals against trusted data: the change that those would bring, and how old it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge
from asyncfed.rules.protocol import SERVER_ROWS, Arrays, Arrival, Probe
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix

TrustedClient: TypeAlias = int | Literal["server"]
"""Whose rows are trusted: a client's, by number, or the server's own, which the experiment's `trusted` names."""


class TrustedChange(WrappingRule):
    """A rule around another that keeps v = train(trusted rows, from x) - x for `refresh` versions.

    The memory is v, of which version it is, and how many versions there were. v has the work of the update that
    arrives when it is computed; its time and energy are not counted.
    """

    __slots__ = ()
    trusted_client: TrustedClient
    refresh: int

    def __post_init__(self) -> None:
        if self.refresh < 1:
            raise ConfigError(f"rule.refresh is {self.refresh}; it must be at least 1 version.")
        if self.trusted_client != "server" and self.trusted_client < 0:
            raise ConfigError(
                f"rule.trusted_client is {self.trusted_client}; clients are numbered from 0. "
                'Rows of the server\'s own are "server".'
            )

    @property
    def trains_on(self) -> int | None:
        """The trusted client, or `SERVER_ROWS`."""
        return SERVER_ROWS if self.trusted_client == "server" else self.trusted_client

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No v yet, and the wrapped rule's memory."""
        versions = np.array([0, -1], np.int64)  # how many there were, and of which one v is
        return {"trusted": np.zeros_like(params), "versions": versions, **super().init(params, num_clients)}

    def trusted_change(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> np.ndarray:
        """v in float64, which is computed first if it is missing or too old."""
        version, computed_at = memory["versions"].tolist()
        if computed_at < 0 or version - computed_at >= self.refresh:
            number = SERVER_ROWS if self.trusted_client == "server" else self.trusted_client
            memory["trusted"][:] = probe(params, number, arrival.work, version) - params
            memory["versions"][1] = version
        trusted: np.ndarray = memory["trusted"].astype(np.float64)
        return trusted

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's."""
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, arrivals, merge, key)
        memory["versions"][0] += 1
        return merged, {"trusted": memory["trusted"], "versions": memory["versions"], **with_prefix(wrapped)}, info
