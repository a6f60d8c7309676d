"""What the compiled loop knows of clients: their order, merges and latest models, of those that were ever touched."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.pool import ClientPool
from asyncfed.kernels.client_tables import (
    CLIENT,
    NOBODY,
    PLACE,
    copy_table,
    empty_table,
    merges_of,
    store_counts,
    store_order,
    store_rows,
)

Array = NDArray[Any]

ROOM_FOR_ALL = -(2**62)
"""In the place of how many entries there are, where there cannot be too many."""


class ClientBooks:
    """The loop's tables of clients, taken from the objects of a run and given back to them.

    `clients` and `places` are tables of `kernels/client_tables.py`, `first_merged` clients in the order of their first
    merge; `room` entries fit in each.

    Args:
        idle: the idle clients.
        merges: how often each client was merged, in the order of their first merge.
        rows: where each client's latest model is.
        num_clients: how many clients there are.
        at_once: how many entries may be needed before the tables are looked at again, at least.
    """

    def __init__(
        self, idle: ClientPool, merges: dict[int, int], rows: dict[int, int], num_clients: int, at_once: int
    ) -> None:
        order = idle.to_plain()
        self._num_clients, self._at_once = num_clients, at_once
        self.room = min(4 * (len(order["places"]) + len(merges) + at_once), num_clients)
        self.clients, self.places = empty_table(CLIENT, self.room), empty_table(PLACE, self.room)
        self.first_merged = np.zeros(self.room, np.int64)
        store_order(self.clients, self.places, _whole(order["places"]), _whole(order["clients"]))
        store_counts(self.clients, _whole(merges), _whole(merges.values()))
        store_rows(self.clients, _whole(rows), _whole(rows.values()))
        self.first_merged[: len(merges)] = list(merges)

    @property
    def used(self) -> int:
        """How many entries the fuller table has; far below 0 if there is room for all clients."""
        if self.room == self._num_clients:
            return ROOM_FOR_ALL
        return max(int(np.count_nonzero(table["key"] != NOBODY)) for table in (self.clients, self.places))

    def make_room(self) -> None:
        """Larger tables, if these are half full of what they may hold."""
        used = self.used
        if 2 * used + self._at_once <= self.room:
            return
        self.room = min(4 * (used + self._at_once), self._num_clients)
        for name, kind in (("clients", CLIENT), ("places", PLACE)):
            larger = empty_table(kind, self.room)
            copy_table(getattr(self, name), larger)
            setattr(self, name, larger)
        self.first_merged = np.concatenate([self.first_merged, np.zeros(self.room - len(self.first_merged), np.int64)])

    def idle(self, size: int) -> dict[str, Any]:
        """The idle clients, the first so many places, as `ClientPool.from_plain` takes them."""
        known = self.places[self.places["key"] != NOBODY]
        known = known[np.argsort(known["key"])]
        return {"size": size, "places": known["key"].tolist(), "clients": known["client"].tolist()}

    def merges(self, participants: int) -> dict[int, int]:
        """How often each client was merged, those that were."""
        who = self.first_merged[:participants]
        return dict(zip(who.tolist(), merges_of(self.clients, who).tolist(), strict=True))

    def rows(self) -> dict[int, int]:
        """Where each client's latest model is, in the order of the rows."""
        known = self.clients[(self.clients["key"] != NOBODY) & (self.clients["row"] >= 0)]
        known = known[np.argsort(known["row"])]
        return dict(zip(known["key"].tolist(), known["row"].tolist(), strict=True))


def _whole(numbers: Any) -> Array:
    return np.array(list(numbers), np.int64)
