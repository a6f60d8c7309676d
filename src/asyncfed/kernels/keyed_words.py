"""The keyed random words of `core.random`, for compiled loops: the same mixing, in unsigned 64-bit arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core import random
from asyncfed.kernels.compiled import compiled

GOLDEN = np.uint64(random.GOLDEN)
CLIENT_STEP = np.uint64(random.CLIENT_STEP)
TICKET_STEP = np.uint64(random.TICKET_STEP)
_FIRST_FACTOR = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND_FACTOR = np.uint64(0x94D0_49BB_1331_11EB)
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_12, _27, _30, _31, _32 = (np.uint64(shift) for shift in (12, 27, 30, 31, 32))


@compiled
def mix64(z: np.uint64) -> np.uint64:
    """`core.random.mix64`."""
    z = (z ^ (z >> _30)) * _FIRST_FACTOR
    z = (z ^ (z >> _27)) * _SECOND_FACTOR
    return z ^ (z >> _31)


@compiled
def draw_key(purpose: np.uint64, client: int, ticket: int) -> np.uint64:
    """`core.random.draw_key`."""
    return mix64(purpose + np.uint64(client) * CLIENT_STEP + np.uint64(ticket) * TICKET_STEP)


@compiled
def draw_keys(purpose: np.uint64, clients: NDArray[Any], tickets: NDArray[Any]) -> NDArray[Any]:
    """`draw_key` of each client and its ticket."""
    keys = np.empty(clients.shape[0], np.uint64)
    for i in range(clients.shape[0]):
        keys[i] = draw_key(purpose, clients[i], tickets[i])
    return keys


@compiled
def keyed_unit(purpose: np.uint64, client: int, ticket: int) -> float:
    """`core.random.unit` of `draw_key`: uniform, strictly between 0 and 1."""
    return (np.float64(draw_key(purpose, client, ticket) >> _12) + 0.5) * 2.0**-52


@compiled
def below(bits: np.uint64, n: int) -> int:
    """The high word of `bits * n`: a whole number in 0 … n-1, as `core.random.Stream.below` makes it of its bits."""
    count = np.uint64(n)
    low, high = bits & _LOW_HALF, bits >> _32
    count_low, count_high = count & _LOW_HALF, count >> _32
    middle = high * count_low + ((low * count_low) >> _32)
    other = low * count_high + (middle & _LOW_HALF)
    return int(high * count_high + (middle >> _32) + (other >> _32))
