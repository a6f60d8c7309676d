"""What each client keeps for a whole run: its device class, its slowness, its bandwidth.

A trait is read as `known[client]` for the clients known at the start, without a call, because every ticket needs it;
that of a client that joins later is computed from its own keyed number, so that no table has to grow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Generic, Literal, NamedTuple, TypeVar

from asyncfed.core.random import purpose_key
from asyncfed.core.record import UNSET, UnsetType
from asyncfed.delays.devices import Device, assign_classes, class_of_joining, complete_classes
from asyncfed.delays.distributions import Distribution
from asyncfed.delays.keyed_draws import client_unit, client_units

T = TypeVar("T")


class Trait(NamedTuple, Generic[T]):
    """The value of each client known at the start, and how to find that of a client that joins later."""

    known: list[T]
    later: Callable[[int], T]

    def of(self, client: int) -> T:
        """The value of this client."""
        return self.known[client] if client < len(self.known) else self.later(client)


def device_trait(devices: Sequence[Device], num_clients: int, seed: int, purpose_name: str = "device") -> Trait[Device]:
    """Each client's device class: exact shares among the clients known at the start, by chance for later ones."""
    classes = complete_classes(devices)
    if len(classes) == 1:
        return shared_trait(classes[0], num_clients)
    purpose = purpose_key(seed, purpose_name)
    known = [classes[index] for index in assign_classes(classes, num_clients, purpose).tolist()]
    return Trait(known, lambda client: classes[class_of_joining(classes, client, purpose)])


def slowness_trait(slowness: Distribution, device: Trait[Device], num_clients: int, seed: int) -> Trait[float]:
    """Each client's factor on computing time: its own draw of `slowness` times its device's."""
    if slowness.is_constant:
        value = float(slowness.expected())
        return Trait([value * d.slowness for d in device.known], lambda client: value * device.later(client).slowness)
    purpose = purpose_key(seed, "slowness")
    draw = slowness.draw
    units = client_units(purpose, num_clients).tolist()
    return Trait(
        [draw(u) * d.slowness for u, d in zip(units, device.known, strict=True)],
        lambda client: draw(client_unit(purpose, client)) * device.later(client).slowness,
    )


def bandwidth_trait(
    direction: Literal["down", "up"],
    bandwidth: Distribution | UnsetType,
    device: Trait[Device],
    seed: int,
) -> Trait[float]:
    """Each client's bytes per second: its device's, or else its own draw of `bandwidth`; infinite where neither is set.

    The draw of a client is keyed by the client alone: it is the same whatever classes of devices there are.
    """
    purpose = purpose_key(seed, f"bandwidth_{direction}")

    def choose(device: Device, u: float) -> float:
        own = device.bandwidth_down if direction == "down" else device.bandwidth_up
        if own is not UNSET:
            return float(own)
        if bandwidth is UNSET:
            return inf
        if bandwidth.is_constant:
            return float(bandwidth.expected())
        return bandwidth.draw(u)

    units = client_units(purpose, len(device.known)).tolist()
    return Trait(
        [choose(of_client, u) for of_client, u in zip(device.known, units, strict=True)],
        lambda client: choose(device.later(client), client_unit(purpose, client)),
    )


def shared_trait(value: T, num_clients: int) -> Trait[T]:
    """The same value for every client."""
    return Trait([value] * num_clients, lambda client: value)
