"""Who is in the mean of all clients' latest models, and with which share: the numbers of the rule `latest_average`.

The mean is over the clients that are here. One that leaves is out of it from the next merge on, and its model is
forgotten; if it is back before that merge, it has missed nothing and stays in. One that comes back later, or joins
after the start, is in the mean from its first merged report on. Those that are here from the start count as the first
model x0 until they report, as the paper has it.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from asyncfed.core.types import Combine
from asyncfed.strategies.protocol import View


def insert(clients: tuple[int, ...], client: int) -> tuple[int, ...]:
    """The clients with one more, in order of number."""
    place = bisect_left(clients, client)
    return (*clients[:place], client, *clients[place:])


def without(clients: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    """The clients that are not among the others."""
    return tuple([client for client in clients if client not in others])


def mean_of_latest(
    clients: tuple[int, ...], departed: tuple[int, ...], joined: tuple[int, ...], by_samples: bool, view: View
) -> Combine:
    """The rule of one merge.

    Args:
        clients: the client of each merged ticket.
        departed: clients of the mean that left since the last merge.
        joined: clients that are here, but of which no report has been merged since they joined.
        by_samples: whether a client counts as many times as it has samples, or once.
        view: who is here.
    """
    if by_samples:
        shares, total = tuple([view.num_examples(client) for client in clients]), view.total_examples
    else:
        shares, total = (1,) * len(clients), len(view.clients)
    if not joined:
        return _latest_average(shares, total, departed)
    left_out = without(joined, clients)
    total -= sum([view.num_examples(client) for client in left_out]) if by_samples else len(left_out)
    return _latest_average(shares, total, departed, without(joined, left_out))


@lru_cache(maxsize=64)
def _latest_average(
    shares: tuple[int, ...], total: int, forget: tuple[int, ...], joined: tuple[int, ...] = ()
) -> Combine:
    """The same few rules again and again: made once each. Only merges by which somebody joins name `joined`."""
    settings = (("shares", shares), ("total", total), ("forget", forget))
    return Combine("latest_average", (*settings, ("joined", joined)) if joined else settings)
