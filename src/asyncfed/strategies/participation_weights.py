"""Inverse participation weights: an update counts the less, the more often its client was merged before.

With n_c the merges of client c so far and n their mean over the clients that are there,

    factor_c = (1 + n) / (1 + n_c),     at most LARGEST_FACTOR

so that the sum of a client's weights tends to the same for all, whether it is fast or slow.
"""

from __future__ import annotations

LARGEST_FACTOR = 10.0
"""A client that is rarely merged may not throw the model far off with one update."""


def participation_factor(counts: list[int], total: int, client: int, num_clients: int) -> float:
    """What the next update of a client counts, against one of a client that was merged as often as the mean.

    Args:
        counts: merges of each client by its number; clients beyond the end have none.
        total: the sum of `counts`.
        client: whose update it is.
        num_clients: how many clients are there, 1 or more.

    Returns:
        The factor, above 0 and at most `LARGEST_FACTOR`.

    >>> [participation_factor([3, 1], 4, client, num_clients=2) for client in (0, 1)]
    [0.75, 1.5]
    """
    mean = total / max(1, num_clients)
    own = counts[client] if client < len(counts) else 0
    return min(LARGEST_FACTOR, (1.0 + mean) / (1.0 + own))


def count_merge(counts: list[int], client: int) -> None:
    """One more merge of this client. The list is changed in place: a copy would cost as much as there are clients.

    >>> counts = [3]
    >>> count_merge(counts, 2)
    >>> counts
    [3, 0, 1]
    """
    if client >= len(counts):
        counts.extend([0] * (client + 1 - len(counts)))
    counts[client] += 1
