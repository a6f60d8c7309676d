"""When clients are present: what a part of the sort "availability" is, and what it becomes in a run."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from asyncfed.delays.availability import Availability
from asyncfed.delays.delay_protocols import Array
from asyncfed.registry import declare_part


@runtime_checkable
class PresenceModel(Protocol):
    """When the clients of one run are present. Every answer depends on the arguments alone."""

    def finish(self, client: int, start: float, seconds: float) -> float:
        """When `seconds` of work begun at `start` are done: never before `start + seconds`, never earlier for a later
        start or for more work.
        """


@runtime_checkable
class PresenceDescription(Protocol):
    """The `availability` of delays: a frozen value, registered by `asyncfed.register("availability")`."""

    def bind(self, num_clients: int, seed: int) -> PresenceModel:
        """When the clients of a run with this seed are present."""

    def mean_seconds(self, seconds: Array, seed: int) -> Array:
        """The mean time, absences included, of so many seconds of work (one number per client)."""


declare_part("availability", PresenceDescription, default=Availability)
