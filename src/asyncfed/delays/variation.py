"""How a client's computing time varies from ticket to ticket: what a part of the sort "variation" is, and `Sites`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.delays.checks import require_positive
from asyncfed.delays.delay_protocols import Array
from asyncfed.registry import declare_part, register

TicketFactor: TypeAlias = Callable[[int, int], float]
"""The factor on the computing time of (client, ticket): it depends on nothing else, so a run can be repeated."""


@runtime_checkable
class Variation(Protocol):
    """The `variation` of delays: a factor on computing time that a client has at a ticket.

    A frozen value, registered by `asyncfed.register("variation")`.
    """

    def bind(self, num_clients: int, seed: int) -> TicketFactor:
        """The factors of a run with these clients and this seed; each finite and above 0."""

    def mean_factors(self, num_clients: int, seed: int) -> Array:
        """The mean factor of each client over many tickets."""

    def simplifications(self) -> tuple[str, ...]:
        """What a prediction from the mean factors leaves out, a clause each."""


declare_part("variation", Variation)


@register("variation")
class Sites(Config, tag_field="kind", tag="sites"):
    """Sites that repeat: client c takes `slowness[c % len(slowness)]` times as long, always.

    Unlike classes of devices, which are drawn, this says which client is which, so that data can be given to it.

    Args:
        slowness: the factor of each site, at least one, each above 0.

    >>> factor = Sites(slowness=(1.0, 0.5)).bind(num_clients=3, seed=0)
    >>> [factor(client, 0) for client in range(3)]
    [1.0, 0.5, 1.0]
    """

    slowness: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.slowness:
            raise ConfigError("sites.slowness is empty; it needs a factor for at least one site.")
        for place, factor in enumerate(self.slowness):
            require_positive(f"sites.slowness[{place}]", factor)

    def bind(self, num_clients: int, seed: int) -> TicketFactor:
        """The factor of each client's site."""
        slowness, count = self.slowness, len(self.slowness)
        return lambda client, ticket: slowness[client % count]

    def mean_factors(self, num_clients: int, seed: int) -> Array:
        """The factor of each client's site."""
        return np.resize(np.asarray(self.slowness, dtype=np.float64), num_clients)

    def simplifications(self) -> tuple[str, ...]:
        """Nothing is left out."""
        return ()
