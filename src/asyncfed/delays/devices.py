"""Device classes: which clients are slow, need much power or lose tickets, in exact shares."""

from __future__ import annotations

from collections.abc import Sequence
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
from asyncfed.delays.keyed_draws import client_unit, client_units

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


def assign_classes(classes: Sequence[Device], num_clients: int, purpose: int) -> NDArray[np.intp]:
    """The class index of each client: clients in keyed random order, cut into blocks of `class_sizes`.

    The order is that of the clients' keyed uniform numbers, so it is the same under every version of numpy.
    """
    order = np.argsort(client_units(purpose, num_clients), kind="stable")
    assigned = np.empty(num_clients, dtype=np.intp)
    assigned[order] = np.repeat(np.arange(len(classes)), class_sizes(classes, num_clients))
    return assigned


def class_of_joining(classes: Sequence[Device], client: int, purpose: int) -> int:
    """The class index of a client that joins after the start, drawn by share."""
    u = client_unit(purpose, client)
    reached = accumulate(device.share for device in classes)
    return next((index for index, share in enumerate(reached) if u < share), len(classes) - 1)
