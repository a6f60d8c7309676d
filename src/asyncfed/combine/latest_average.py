"""The mean of the latest model received from every client: the paper's Algorithm 1 taken literally.

    x = x0 + (1/total) * sum over clients heard from of share_c * (slot_c - x0)

so a client not heard from counts as x0. An arrival moves its client's slot by the merge's weight (1 replaces it, less
moves it part of the way). The sum is kept up to date and recomputed from the slots once every as many merges as there
are slots, so rounding cannot build up and the cost of a merge stays proportional to the number of parameters.
"""

from __future__ import annotations

import numpy as np

from asyncfed.combine.protocol import Arrays, Batch


class LatestMemory:
    """Slots in the order in which clients were first heard from; `row_of[c]` is client c's, or -1."""

    __slots__ = ("count", "merges_left", "origin", "row_of", "shares", "slots", "total")

    def __init__(self, origin: np.ndarray) -> None:
        self.origin = origin
        self.slots = np.empty((0, origin.size), origin.dtype)
        self.shares = np.empty(0, np.float64)
        self.row_of = np.full(0, -1, np.int64)
        self.count = 0
        self.merges_left = 0
        self.total = np.zeros_like(origin)

    def row(self, client: int) -> int:
        """The client's slot; made, holding the origin, if it has none."""
        if client >= self.row_of.size:
            grown = np.full(max(client + 1, 2 * self.row_of.size, 16), -1, np.int64)
            grown[: self.row_of.size] = self.row_of
            self.row_of = grown
        row = self.row_of.item(client)
        if row < 0:
            row = self.count
            if row == self.slots.shape[0]:
                self._grow(max(16, 2 * row))
            self.slots[row] = self.origin
            self.shares[row] = 0.0
            self.row_of[client] = row
            self.count = row + 1
        return row

    def _grow(self, capacity: int) -> None:
        slots = np.empty((capacity, self.origin.size), self.origin.dtype)
        slots[: self.count] = self.slots[: self.count]
        shares = np.zeros(capacity)
        shares[: self.count] = self.shares[: self.count]
        self.slots, self.shares = slots, shares

    def recompute(self) -> None:
        n = self.count
        weighted = (self.slots[:n] - self.origin) * self.shares[:n, None]
        self.total = weighted.sum(axis=0).astype(self.origin.dtype)
        self.merges_left = max(64, n)


class LatestAverage:
    """Settings of a merge: `shares` (one a ticket), `total` (over all clients), `forget` (clients that have left)."""

    name = "latest_average"

    def init(self, params: np.ndarray) -> LatestMemory:
        return LatestMemory(params)

    def apply(
        self, memory: LatestMemory, params: np.ndarray, batch: Batch
    ) -> tuple[np.ndarray, LatestMemory, dict[str, float]]:
        settings = dict(batch.settings)
        for payload, weight, client, share in zip(
            batch.payloads, batch.weights, batch.clients, settings["shares"], strict=True
        ):
            _move_slot(memory, client, payload, weight, float(share))
        for client in settings["forget"]:
            _set_share(memory, memory.row(client), 0.0)
        memory.merges_left -= 1
        if memory.merges_left < 0:
            memory.recompute()
        if not settings["total"]:
            return params, memory, {}
        mean = memory.total / settings["total"]
        mean += memory.origin
        return mean, memory, {}

    def dump(self, memory: LatestMemory) -> Arrays:
        n = memory.count
        return {
            "origin": memory.origin,
            "slots": memory.slots[:n],
            "shares": memory.shares[:n],
            "row_of": memory.row_of,
            "total": memory.total,
            "merges_left": np.array(memory.merges_left),
        }

    def load(self, arrays: Arrays) -> LatestMemory:
        memory = LatestMemory(arrays["origin"])
        memory.slots, memory.shares = arrays["slots"].copy(), arrays["shares"].copy()
        memory.row_of, memory.total = arrays["row_of"].copy(), arrays["total"].copy()
        memory.count, memory.merges_left = memory.slots.shape[0], int(arrays["merges_left"])
        return memory


def _move_slot(memory: LatestMemory, client: int, payload: np.ndarray, weight: float, share: float) -> None:
    row = memory.row(client)
    if memory.shares.item(row) != share:
        _set_share(memory, row, share)
    slot = memory.slots[row]
    change = payload - slot
    if weight == 1.0:
        slot[:] = payload
    else:
        change *= weight
        slot += change
    if share != 1.0:
        change *= share
    memory.total += change


def _set_share(memory: LatestMemory, row: int, share: float) -> None:
    memory.total += (memory.slots[row] - memory.origin) * (share - memory.shares.item(row))
    memory.shares[row] = share
