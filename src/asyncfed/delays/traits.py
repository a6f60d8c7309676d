"""What each client keeps for a whole run: its device class, its slowness, its phase.

Each is a function of the client's number. Clients known at the start are looked up in a table; one that joins later
is computed when asked for, from its own keyed number, so that it needs no table to grow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from asyncfed.core.random import purpose_key
from asyncfed.delays.availability import Availability
from asyncfed.delays.devices import Device, assign_classes, class_of_joining, complete_classes
from asyncfed.delays.distributions import Constant, Distribution
from asyncfed.delays.keyed import client_unit, client_units

T = TypeVar("T")


def device_trait(devices: Sequence[Device], num_clients: int, seed: int) -> Callable[[int], Device]:
    """Each client's device class: exact shares among the clients known at the start, by chance for later ones."""
    classes = complete_classes(devices)
    if len(classes) == 1:
        return _shared(classes[0])
    purpose = purpose_key(seed, "device")
    known = [classes[index] for index in assign_classes(classes, num_clients, purpose).tolist()]
    return _tabled(known, lambda client: classes[class_of_joining(classes, client, purpose)])


def slowness_trait(
    slowness: Distribution, device: Callable[[int], Device], num_clients: int, seed: int
) -> Callable[[int], float]:
    """Each client's factor on computing time: its own draw of `slowness` times its device's."""
    if isinstance(slowness, Constant):
        value = float(slowness.value)
        return lambda client: value * device(client).slowness
    purpose = purpose_key(seed, "slowness")
    draw = slowness.draw
    units = client_units(purpose, num_clients).tolist()
    return _tabled(
        [draw(u) * device(client).slowness for client, u in enumerate(units)],
        lambda client: draw(client_unit(purpose, client)) * device(client).slowness,
    )


def phase_trait(availability: Availability, num_clients: int, seed: int) -> Callable[[int], float]:
    """The moment in [0, period) at which a client's window opens."""
    if not availability.random_phase:
        return _shared(0.0)
    purpose, period = purpose_key(seed, "phase"), availability.period
    known = (client_units(purpose, num_clients) * period).tolist()
    return _tabled(known, lambda client: client_unit(purpose, client) * period)


def _shared(value: T) -> Callable[[int], T]:
    return lambda client: value


def _tabled(known: Sequence[T], later: Callable[[int], T]) -> Callable[[int], T]:
    size = len(known)
    return lambda client: known[client] if client < size else later(client)
