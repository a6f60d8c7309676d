"""Keyed uniform numbers, fast: one (client, ticket) in one function, or every client at once in arrays.

Both give the very number of `unit(draw_key(purpose, client, ticket))`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import CLIENT_STEP, MASK, TICKET_STEP

BLOCK = 1 << 15
"""Clients whose numbers are made at once where there are very many: what a processor's cache holds."""


def keyed_unit(
    purpose: int,
    client: int,
    ticket: int,
    mask: int = MASK,
    client_step: int = CLIENT_STEP,
    ticket_step: int = TICKET_STEP,
) -> float:
    """The uniform number of this ticket under a purpose key, strictly between 0 and 1.

    The mixing of `core.random` is written out: a simulation draws one number or more per ticket, and calls and wide
    integers are what that costs.

    >>> from asyncfed.core.random import draw_key, purpose_key, unit
    >>> key = purpose_key(7, "example")
    >>> keyed_unit(key, 3, 5) == unit(draw_key(key, 3, 5))
    True
    """
    z = (purpose + client * client_step + ticket * ticket_step) & mask
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & mask
    return (((z ^ (z >> 31)) >> 12) + 0.5) * 2.0**-52


def client_unit(purpose: int, client: int) -> float:
    """The one uniform number of this client under a purpose key (its ticket is 0: drawn once, not per ticket)."""
    return keyed_unit(purpose, client, 0)


def client_units(purpose: int, num_clients: int, first: int = 0) -> NDArray[np.float64]:
    """`client_unit(purpose, client)` for clients first … num_clients-1, in arrays: a million in about 0.05 s.

    >>> from asyncfed.core.random import purpose_key
    >>> key = purpose_key(7, "example")
    >>> client_units(key, 3).tolist() == [client_unit(key, client) for client in range(3)]
    True
    """
    clients = np.arange(first, num_clients, dtype=np.uint64)
    keys = _mix64(np.uint64(purpose) + clients * np.uint64(CLIENT_STEP))
    return ((keys >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def ranked_clients(purpose: int, num_clients: int, ranks: Sequence[int]) -> dict[int, tuple[float, int]]:
    """Who has a rank, from 0, when clients are ordered by (`client_unit(purpose, client)`, client): number and client.

    The clients are gone through in blocks, and only numbers near those that a rank is expected at are kept: a hundred
    million clients take some seconds and no memory to speak of.

    Args:
        purpose: the purpose key of the numbers.
        num_clients: how many clients there are, at least 1.
        ranks: each from 0 to num_clients - 1.

    >>> from asyncfed.core.random import purpose_key
    >>> int(ranked_clients(purpose_key(7, "example"), 3, [0])[0][1])
    2
    """
    reach = 4.0 / num_clients**0.5  # eight standard deviations of an order statistic
    found: dict[int, tuple[float, int]] = {}
    while len(found) < len(set(ranks)):
        windows = {rank: (rank / num_clients - reach, rank / num_clients + reach) for rank in ranks}
        below, near = dict.fromkeys(ranks, 0), {rank: list[NDArray[np.float64]]() for rank in ranks}
        for first, units in _blocks_of_units(purpose, num_clients):
            for rank, (low, high) in windows.items():
                below[rank] += int(np.count_nonzero(units < low))
                chosen = np.flatnonzero((units >= low) & (units < high))
                near[rank].append(np.array([units[chosen], first + chosen]))
        for rank, blocks in near.items():
            units, clients = np.concatenate(blocks, axis=1)
            if below[rank] <= rank < below[rank] + len(units):
                place = np.argsort(units, kind="stable")[rank - below[rank]]
                found[rank] = (float(units[place]), int(clients[place]))
        reach *= 4.0
    return found


def _blocks_of_units(purpose: int, num_clients: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    for first in range(0, num_clients, BLOCK):
        yield first, client_units(purpose, min(first + BLOCK, num_clients), first)


def _mix64(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`asyncfed.core.random.mix64` of each word: unsigned arrays wrap where the scalar masks."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))
