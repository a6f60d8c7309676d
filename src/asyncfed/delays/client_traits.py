"""What each client keeps for a whole run: its device class, its slowness, its bandwidth.

A trait is read as `known[client]` for the clients known at the start, from a list, because every ticket needs it. Where
there are more than a list should hold, `known` computes it when it is read. That of a client that joins later is
computed from its own keyed number, so that no table has to grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from asyncfed.core.random import purpose_key
from asyncfed.core.record import UNSET, UnsetType
from asyncfed.delays.devices import ClassBounds, Device, class_of_joining, complete_classes
from asyncfed.delays.distributions import Distribution
from asyncfed.delays.keyed_draws import client_unit, client_units

T = TypeVar("T")

MOST_LISTED = 1_000_000
"""Clients up to which what each of them keeps is in a list; of more, it is computed when it is asked for."""


class Computed(Sequence[T]):
    """What each of so many clients has, computed when it is read.

    Args:
        num_clients: how many there are.
        compute: the value of a client.
    """

    def __init__(self, num_clients: int, compute: Callable[[int], T]) -> None:
        self._num_clients, self._compute = num_clients, compute

    def __len__(self) -> int:
        return self._num_clients

    def __getitem__(self, client: Any) -> Any:
        if not 0 <= client < self._num_clients:
            raise IndexError(client)
        return self._compute(client)

    def __iter__(self) -> Iterator[T]:
        return map(self._compute, range(self._num_clients))


class Trait(NamedTuple, Generic[T]):
    """The value of each client known at the start, and how to find that of a client that joins later."""

    known: Sequence[T]
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
    bounds = ClassBounds(classes, num_clients, purpose)
    known: Sequence[Device] = Computed(num_clients, lambda client: classes[bounds.class_of(client)])
    if num_clients <= MOST_LISTED:
        known = [classes[index] for index in bounds.class_of_all(num_clients).tolist()]
    return Trait(known, lambda client: classes[class_of_joining(classes, client, purpose)])


def slowness_trait(slowness: Distribution, device: Trait[Device], num_clients: int, seed: int) -> Trait[float]:
    """Each client's factor on computing time: its own draw of `slowness` times its device's."""
    if slowness.is_constant:
        value = float(slowness.expected())
        return _with_devices(device, num_clients, lambda of_client, u: value * of_client.slowness, None)
    draw = slowness.draw
    return _with_devices(
        device, num_clients, lambda of_client, u: draw(u) * of_client.slowness, purpose_key(seed, "slowness")
    )


def _with_devices(
    device: Trait[Device], num_clients: int, value: Callable[[Device, float], float], purpose: int | None
) -> Trait[float]:
    """The value of each client by its device and its own keyed number; without a purpose, the number is not drawn."""

    def unit(client: int) -> float:
        return 0.5 if purpose is None else client_unit(purpose, client)

    def later(client: int) -> float:
        return value(device.later(client), unit(client))

    if num_clients > MOST_LISTED:
        return Trait(Computed(num_clients, lambda client: value(device.known[client], unit(client))), later)
    units = [0.5] * num_clients if purpose is None else client_units(purpose, num_clients).tolist()
    return Trait([value(of_client, u) for of_client, u in zip(device.known, units, strict=True)], later)


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

    return _with_devices(device, len(device.known), choose, purpose)


def shared_trait(value: T, num_clients: int) -> Trait[T]:
    """The same value for every client."""
    known: Sequence[T] = [value] * num_clients if num_clients <= MOST_LISTED else Computed(num_clients, lambda c: value)
    return Trait(known, lambda client: value)
