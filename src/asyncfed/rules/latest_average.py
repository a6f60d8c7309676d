"""The mean of the latest model received from every client: the paper's Algorithm 1 taken literally.

    x = x0 + sum over clients with a slot of (share_c / total) * (slot_c - x0)

so a client of the total that never reported counts as x0. An arrival moves its client's slot by the merge's weight (1
replaces it, less moves it part of the way), and x by what that changes. A client that left is out of the mean; when a
report of it is merged again, its slot begins at the model of that moment. Once in as many merges as there are slots,
and whenever shares or total change, x is computed from the slots anew: rounding cannot build up, and a merge costs no
more than a few passes over the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asyncfed.kernels.recycled_memory import empty_like
from asyncfed.rules.protocol import Arrays

WIDE = 4096
"""Params from which on slots are added by a compiled loop, without an array as large as all slots."""

RESERVED = 1 << 26
"""Bytes that slots of wide models begin with: memory that is not written to costs nothing, copying it to grow does."""

MERGES_BETWEEN = 256
"""At least so many merges pass before x is computed anew for rounding's sake."""


class LatestMemory:
    """Slots in the order in which clients first reported; `row_of[c]` is client c's."""

    __slots__ = ("add_slots", "merges_left", "move_slot", "origin", "row_of", "shares", "slots", "total")

    def __init__(self, origin: np.ndarray) -> None:
        from asyncfed.kernels.merging import add_slots, move_slot  # compiled loops are loaded by whoever will merge

        self.move_slot, self.add_slots = move_slot, add_slots
        self.origin = origin
        self.slots = np.empty((0, origin.size), origin.dtype)
        self.shares: list[float] = []
        self.row_of: dict[int, int] = {}
        self.merges_left = MERGES_BETWEEN
        self.total = 0.0

    def new_row(self, client: int, share: float) -> int:
        """A slot that holds the origin, for a client that reports for the first time."""
        row = len(self.shares)
        if row == self.slots.shape[0]:
            first = 16 if self.origin.size < WIDE else max(16, RESERVED // self.origin.nbytes)
            grown = np.empty((max(first, 2 * row), self.origin.size), self.origin.dtype)
            grown[:row] = self.slots
            self.slots = grown
        self.slots[row] = self.origin
        self.shares.append(share)
        self.row_of[client] = row
        return row

    def begin_at(self, params: np.ndarray, clients: Sequence[int]) -> None:
        """Slots that hold these params, for clients that come into the mean; what they held before is forgotten."""
        for client in clients:
            row = self.row_of.get(client)
            if row is None:
                row = self.new_row(client, 0.0)  # first: it may put a larger array in the place of `slots`
            self.slots[row] = params

    def forget(self, client: int) -> bool:
        """The client counts for nothing. True if it counted before."""
        row = self.row_of.get(client)
        if row is None:
            return False
        self.slots[row] = self.origin
        counted, self.shares[row] = self.shares[row] != 0.0, 0.0
        return counted

    def mean(self) -> np.ndarray:
        """x, from the slots themselves."""
        shares = np.array(self.shares, np.float64) / self.total
        self.merges_left = max(MERGES_BETWEEN, len(shares))
        slots, origin = self.slots[: len(shares)], self.origin
        if origin.size < WIDE:
            deviation = ((slots - origin) * shares[:, None]).sum(axis=0)
        else:  # the same sums in the same order
            deviation = np.zeros(origin.size)
            self.add_slots(slots, origin, shares, deviation)
        mean: np.ndarray = (deviation + origin).astype(origin.dtype)
        return mean


class LatestAverage:
    """The mean of the latest models. A merge's settings, in this order:

    - `shares`: what the client of each ticket counts in the mean, 0 or more;
    - `total`: the sum over all clients in the mean, those that never reported included;
    - `forget`: clients that left since the last merge;
    - `joined`, only if there are any: clients of these tickets that count from this merge on, because they joined, or
      came back, since the start. Files of earlier versions never name it: there a client that came back counted as x0.
    """

    name = "latest_average"

    def init(self, params: np.ndarray) -> LatestMemory:
        """No slots yet; `params` is the origin x0."""
        return LatestMemory(params)

    def apply(
        self,
        memory: LatestMemory,
        params: np.ndarray,
        payloads: Sequence[np.ndarray],
        weights: Sequence[float],
        clients: Sequence[int],
        settings: Sequence[tuple[str, Any]],
    ) -> tuple[np.ndarray, LatestMemory, dict[str, float]]:
        """Move the slots of these clients, and the mean with them."""
        if len(settings) == 3:
            (_, shares), (_, total), (_, forget) = settings
            anew = total != memory.total
        else:
            (_, shares), (_, total), (_, forget), (_, joined) = settings
            memory.begin_at(params, joined)
            anew = True
        memory.total = total
        memory.merges_left -= 1
        for payload, weight, client, share in zip(payloads, weights, clients, shares, strict=True):
            row = memory.row_of.get(client)
            if row is None:
                row = memory.new_row(client, share)
            elif memory.shares[row] != share:
                memory.shares[row] = share
                anew = True
            merged = empty_like(params)
            memory.move_slot(params, memory.slots, row, payload, weight, share / total if total else 0.0, merged)
            params = merged
        for client in forget:
            anew |= memory.forget(client)
        if total and (anew or memory.merges_left < 0):
            params = memory.mean()
        return params, memory, {}

    def dump(self, memory: LatestMemory) -> Arrays:
        """The memory as named arrays."""
        return {
            "origin": memory.origin,
            "slots": memory.slots[: len(memory.shares)],
            "shares": np.array(memory.shares, np.float64),
            "clients": np.array(list(memory.row_of), np.int64),
            "numbers": np.array([memory.total, memory.merges_left], np.float64),
        }

    def load(self, arrays: Arrays) -> LatestMemory:
        """The inverse of `dump`."""
        memory = LatestMemory(arrays["origin"])
        memory.slots, memory.shares = arrays["slots"].copy(), arrays["shares"].tolist()
        memory.row_of = {client: row for row, client in enumerate(arrays["clients"].tolist())}
        memory.total, memory.merges_left = float(arrays["numbers"][0]), int(arrays["numbers"][1])
        return memory
