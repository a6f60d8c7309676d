"""What a live session records of tickets and clients beyond what the server knows: times, faults, norms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from asyncfed.core.types import Dispatch
from asyncfed.live.checks import Limits, RecentNorms

MAX_GIVEN_UP = 10_000


class TicketRecords:
    """Of tickets: when they were dispatched, and which were given up. Of clients: when they were free, their faults.

    `earlier_names` are those of the servers that this run had before: what carries one is late, and no fault.
    """

    def __init__(self, limits: Limits, model_bytes: int = 0) -> None:
        self._limits = limits
        self.allowed_seconds = limits.allowed_seconds(model_bytes)
        self.dispatched_at: dict[int, float] = {}
        self.free_since: dict[int, float] = {}
        self.given_up: dict[int, int] = {}
        self.faults: dict[int, int] = {}
        self.excluded: set[int] = set()
        self.refused = 0
        self.earlier_names: set[str] = set()
        self.norms = RecentNorms(limits)

    def start_time(self, ticket: int, client: int) -> float:
        """When the client could begin with this ticket: when it was dispatched, or the one before it was done."""
        return max(self.dispatched_at[ticket], self.free_since.get(client, 0.0))

    def close(self, ticket: int, client: int, now: float) -> float:
        """A ticket was answered or given up: the client may begin with its next one. Returns how long it was out."""
        self.free_since[client] = now
        return now - self.dispatched_at.pop(ticket)

    def give_up(self, ticket: int, client: int) -> None:
        """One late answer to this ticket is no fault. Only the last `MAX_GIVEN_UP` are remembered."""
        self.given_up[ticket] = client
        if len(self.given_up) > MAX_GIVEN_UP:
            del self.given_up[next(iter(self.given_up))]

    def excuse_late_answer(self, ticket: int, client: int) -> bool:
        """True, once, if this client's ticket was given up."""
        if self.given_up.get(ticket) != client:
            return False
        del self.given_up[ticket]
        return True

    def count_refusal(self, client: int, is_fault: bool) -> None:
        """Count a refused result; at its last permitted fault the client is excluded."""
        self.refused += 1
        if is_fault:
            self.faults[client] = self.faults.get(client, 0) + 1
            if self.faults[client] >= self._limits.faults:
                self.excluded.add(client)

    def find_overdue(self, in_flight: Iterable[Dispatch], now: float) -> list[Dispatch]:
        """Tickets whose time is over. A client does one at a time: the time of those that wait has not begun."""
        limit, seen, overdue = self.allowed_seconds, set(), []
        if limit is None:
            return []
        for dispatch in in_flight:
            if dispatch.client not in seen:
                seen.add(dispatch.client)
                if now - self.start_time(dispatch.ticket, dispatch.client) > limit:
                    overdue.append(dispatch)
        return overdue

    def snapshot(self, name: str) -> dict[str, Any]:
        """The records as the checkpoint of the server of this name holds them; its keys are those of all versions."""
        return {
            "handed_out_at": list(self.dispatched_at.items()),
            "free_since": list(self.free_since.items()),
            "given_up": list(self.given_up.items()),
            "faults": list(self.faults.items()),
            "set_aside": sorted(self.excluded),
            "refused": self.refused,
            "norms": self.norms.to_list(),
            "names": sorted({*self.earlier_names, name}),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.dispatched_at, self.free_since = dict(snapshot["handed_out_at"]), dict(snapshot["free_since"])
        self.given_up, self.faults = dict(snapshot["given_up"]), dict(snapshot["faults"])
        self.excluded, self.refused = set(snapshot["set_aside"]), snapshot["refused"]
        self.norms = RecentNorms(self._limits, snapshot["norms"])
        self.earlier_names = set(snapshot.get("names", ()))
