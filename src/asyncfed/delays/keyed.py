"""Keyed uniform numbers in bulk: for every client at once, the very number that the scalar draw would give it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import CLIENT_STEP, GOLDEN, draw_key, unit


def client_unit(purpose: int, client: int) -> float:
    """The one uniform number of this client under a purpose key (its ticket is 0: drawn once, not per ticket)."""
    return unit(draw_key(purpose, client, 0))


def client_units(purpose: int, num_clients: int) -> NDArray[np.float64]:
    """`client_unit(purpose, client)` for clients 0 … num_clients-1, in arrays: a million in about 0.05 s.

    >>> from asyncfed.core.random import purpose_key
    >>> key = purpose_key(7, "example")
    >>> client_units(key, 3).tolist() == [client_unit(key, client) for client in range(3)]
    True
    """
    clients = np.arange(num_clients, dtype=np.uint64)
    keys = _mix64(np.uint64(purpose) + clients * np.uint64(CLIENT_STEP))
    words = _mix64(keys + np.uint64(GOLDEN))
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _mix64(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`asyncfed.core.random.mix64` of each word: unsigned arrays wrap where the scalar masks."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))
