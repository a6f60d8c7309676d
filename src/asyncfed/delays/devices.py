"""Device classes: which clients are slow, need much power or lose tickets, in exact shares."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.delays.checks import (
    require_non_negative,
    require_positive,
    require_positive_or_unset,
    require_probability,
)
from asyncfed.delays.keyed_draws import client_unit, client_units, ranked_clients

CPU_WATTS = 45.0
GPU_WATTS = 125.0
SHARE_ROUNDING = 1e-9
"""Shares such as 0.1 have no exact float: sums this near to 1 count as 1."""


class Device(Config):
    """A class of devices, to which a share of the clients belongs.

    Args:
        name: what the class is called, not empty and not twice the same.
        share: the share of the clients, 0 to 1; all shares together at most 1. The rest are "standard" devices.
        slowness: factor on computing seconds, above 0.
        watts: the power drawn while computing, 0 or more.
        dropout: probability that a ticket is lost, 0 to 1, besides that of `Delays.dropout`.
        bandwidth_down: bytes per second of a client's download, above 0, in place of a draw of `Delays.bandwidth_down`.
        bandwidth_up: bytes per second of its upload, above 0, in place of a draw of `Delays.bandwidth_up`.

    What is UNSET is not written down; the clients of the class then have the bandwidth that they draw, if there is any.

    >>> Device(name="phone", share=0.3, slowness=4.0, watts=5.0).slowness
    4.0
    """

    name: str
    share: float
    slowness: float = 1.0
    watts: float = CPU_WATTS
    dropout: float = 0.0
    bandwidth_down: float | UnsetType = UNSET
    bandwidth_up: float | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError('device.name is empty; name the class, for instance "phone".')
        require_probability(f"device {self.name}: share", self.share)
        require_positive(f"device {self.name}: slowness", self.slowness)
        require_non_negative(f"device {self.name}: watts", self.watts)
        require_probability(f"device {self.name}: dropout", self.dropout)
        require_positive_or_unset(f"device {self.name}: bandwidth_down", self.bandwidth_down)
        require_positive_or_unset(f"device {self.name}: bandwidth_up", self.bandwidth_up)


def complete_classes(devices: Sequence[Device]) -> tuple[Device, ...]:
    """The classes with shares that add up to 1: clients that belong to none of them are "standard" devices.

    >>> [(device.name, device.share) for device in complete_classes([Device(name="phone", share=0.25)])]
    [('phone', 0.25), ('standard', 0.75)]
    """
    claimed = sum(device.share for device in devices)
    if claimed > 1.0 + SHARE_ROUNDING:
        raise ConfigError(f"the shares of the devices add up to {claimed:g}; the limit is 1. Lower some of them.")
    rest = 1.0 - claimed
    classes = tuple(devices)
    if rest > SHARE_ROUNDING:
        classes += (Device(name="standard", share=rest),)
    names = [device.name for device in classes]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f'two device classes are named "{name}"; rename one. '
                '("standard" is the class of the clients that belong to no other.)'
            )
    return classes


def class_sizes(classes: Sequence[Device], num_clients: int) -> list[int]:
    """How many clients each class gets: its share, rounded so that all add up (largest remainder, first wins ties).

    >>> class_sizes([Device(name="slow", share=0.2), Device(name="fast", share=0.8)], 11)
    [2, 9]
    """
    quotas = [device.share * num_clients for device in classes]
    sizes = [int(quota + SHARE_ROUNDING) for quota in quotas]
    by_remainder = sorted(range(len(classes)), key=lambda index: sizes[index] - quotas[index])
    for index in by_remainder[: num_clients - sum(sizes)]:
        sizes[index] += 1
    return sizes


class ClassBounds:
    """Which class each client belongs to: clients in the order of a keyed number, cut into blocks of `class_sizes`.

    The order is that of (keyed uniform number, client), so it is the same under every version of numpy. Kept is who
    comes first in each block, which is enough to tell the class of any client by its own number.

    Args:
        classes: the classes, their shares adding up to 1.
        num_clients: the clients known at the start, at least 1.
        purpose: the purpose key of the numbers.
    """

    def __init__(self, classes: Sequence[Device], num_clients: int, purpose: int) -> None:
        self.purpose = purpose
        ranks = tuple(accumulate(class_sizes(classes, num_clients)))[:-1]
        self.firsts = _firsts_of_blocks(ranks, num_clients, purpose)

    def class_of(self, client: int) -> int:
        """The index of the class of one of these clients."""
        return bisect_right(self.firsts, (client_unit(self.purpose, client), client))

    def class_of_all(self, num_clients: int) -> NDArray[np.intp]:
        """The class index of clients 0 … num_clients-1."""
        units = client_units(self.purpose, num_clients)
        assigned = np.zeros(num_clients, dtype=np.intp)
        for unit, first in self.firsts:
            assigned += (units > unit) | ((units == unit) & (np.arange(num_clients) >= first))
        return assigned


@lru_cache(maxsize=8)
def _firsts_of_blocks(ranks: tuple[int, ...], num_clients: int, purpose: int) -> list[tuple[float, int]]:
    """The (number, client) of each rank; beyond the last rank a number that no client has. Bound more than once."""
    found = ranked_clients(purpose, num_clients, [rank for rank in ranks if rank < num_clients])
    return [found[rank] if rank < num_clients else (1.0, num_clients) for rank in ranks]


def class_of_joining(classes: Sequence[Device], client: int, purpose: int) -> int:
    """The class index of a client that joins after the start, drawn by share."""
    u = client_unit(purpose, client)
    reached = accumulate(device.share for device in classes)
    return next((index for index, share in enumerate(reached) if u < share), len(classes) - 1)
