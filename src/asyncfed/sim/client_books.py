"""What the compiled loop knows of clients: their order, merges and latest models, of those that were ever touched."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.pool import ClientPool
from asyncfed.kernels.client_tables import (
    copy_table,
    empty_table,
    entries_of,
    merges_of,
    store_counts,
    store_order,
    store_rows,
)

Array = NDArray[Any]


class ClientBooks:
    """The loop's table of clients, taken from the objects of a run and given back to them.

    `clients` is the table of `kernels/client_tables.py`, `first_merged` clients in the order of their first merge, as
    long as the table has room for.

    Args:
        idle: the idle clients.
        merges: how often each client was merged, in the order of their first merge.
        rows: where each client's latest model is.
        num_clients: how many clients there are.
        at_once: how many entries one arrival may add, and so many more that the table need not grow all the time.
    """

    def __init__(
        self, idle: ClientPool, merges: dict[int, int], rows: dict[int, int], num_clients: int, at_once: int
    ) -> None:
        order = idle.to_plain()
        self._num_clients, self._at_once = num_clients, at_once
        self._make_table(2 * len(order["places"]) + len(merges) + len(rows))
        store_order(self.clients, _whole(order["places"]), _whole(order["clients"]))
        store_counts(self.clients, _whole(merges), _whole(merges.values()))
        store_rows(self.clients, _whole(rows), _whole(rows.values()))
        self.first_merged[: len(merges)] = list(merges)

    def _make_table(self, used: int) -> None:
        """An empty table with room for twice as many entries, or for all clients."""
        room = min(2 * (used + self._at_once), self._num_clients + self._at_once)
        self.clients = empty_table(min(room, self._num_clients))
        self.first_merged = np.zeros(room, np.int64)

    def grow(self) -> None:
        """Put everything into a larger table."""
        clients, merged = self.clients, self.first_merged
        self._make_table(int(clients["key"][-1]))
        copy_table(clients, self.clients)
        self.first_merged[: len(merged)] = merged

    def idle(self, size: int) -> dict[str, Any]:
        """The idle clients, the first so many places, as `ClientPool.from_plain` takes them."""
        known = entries_of(self.clients)
        known = known[known["client"] != known["key"]]
        known = known[np.argsort(known["key"])]
        return {"size": size, "places": known["key"].tolist(), "clients": known["client"].tolist()}

    def merges(self, participants: int) -> dict[int, int]:
        """How often each client was merged, those that were."""
        who = self.first_merged[:participants]
        return dict(zip(who.tolist(), merges_of(self.clients, who).tolist(), strict=True))

    def rows(self) -> dict[int, int]:
        """Where each client's latest model is, in the order of the rows."""
        known = entries_of(self.clients)
        known = known[known["row"] >= 0]
        known = known[np.argsort(known["row"])]
        return dict(zip(known["key"].tolist(), known["row"].tolist(), strict=True))


def _whole(numbers: Any) -> Array:
    return np.array(list(numbers), np.int64)
