"""Correcting for who is heard more often: what weighs an update by how often its client was merged before.

With n_c the merges of client c so far and n their mean over the clients here,

    factor_c = (1 + n) / (1 + n_c),     at most MOST

so that the sum of a client's weights tends to the same for all, whether it is fast or slow.
"""

from __future__ import annotations

from typing import TypeAlias

Counts: TypeAlias = tuple[int, ...]
"""Merges of each client by its number; clients beyond the end have none."""

MOST = 10.0
"""A client that is rarely heard may not throw the model far off with one update."""


def participation_factor(counts: Counts, client: int, num_clients: int) -> float:
    """What the next update of a client counts, against one of a client that was merged as often as the mean.

    >>> participation_factor((3, 1), 0, 2), participation_factor((3, 1), 1, 2), participation_factor((), 5, 2)
    (0.75, 1.5, 1.0)
    """
    mean = sum(counts) / max(1, num_clients)
    own = counts[client] if client < len(counts) else 0
    return min(MOST, (1.0 + mean) / (1.0 + own))


def counted(counts: Counts, client: int) -> Counts:
    """The counts after one more merge of a client.

    >>> counted((3,), 2)
    (3, 0, 1)
    """
    longer = [*counts, *([0] * (client + 1 - len(counts)))]
    longer[client] += 1
    return tuple(longer)
