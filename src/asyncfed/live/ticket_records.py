"""What a live server remembers of tickets and nodes that the server itself does not know: times, faults, norms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from asyncfed.core.types import Dispatch
from asyncfed.live.checks import Limits, Norms

MOST_GIVEN_UP = 10_000


class Standing:
    """Tickets: when they went out, when their client could begin, which were given up. Nodes: how often at fault."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.handed_out_at: dict[int, float] = {}
        self.free_since: dict[int, float] = {}
        self.given_up: dict[int, int] = {}
        self.faults: dict[int, int] = {}
        self.set_aside: set[int] = set()
        self.refused = 0
        self.norms = Norms(limits)

    def began(self, ticket: int, client: int) -> float:
        """When the client could begin with this ticket: when it was handed out, or the one before it was done."""
        return max(self.handed_out_at[ticket], self.free_since.get(client, 0.0))

    def settled(self, ticket: int, client: int, now: float) -> float:
        """A ticket was answered or given up: the client may begin with its next one. How long the ticket was out."""
        self.free_since[client] = now
        return now - self.handed_out_at.pop(ticket)

    def gave_up(self, ticket: int, client: int) -> None:
        """One late answer to this ticket is to be forgiven. Only the last many are remembered."""
        self.given_up[ticket] = client
        if len(self.given_up) > MOST_GIVEN_UP:
            del self.given_up[next(iter(self.given_up))]

    def forgive(self, ticket: int, client: int) -> bool:
        """True, once, if this client's ticket was given up."""
        if self.given_up.get(ticket) != client:
            return False
        del self.given_up[ticket]
        return True

    def count_refusal(self, client: int, is_fault: bool) -> None:
        self.refused += 1
        if is_fault:
            self.faults[client] = self.faults.get(client, 0) + 1
            if self.faults[client] >= self._limits.faults:
                self.set_aside.add(client)

    def overdue(self, flying: Iterable[Dispatch], now: float) -> list[Dispatch]:
        """Tickets whose time is over. A client does one at a time: the time of those that wait has not begun."""
        limit, seen, late = self._limits.ticket_seconds, set(), []
        if limit is None:
            return []
        for dispatch in flying:
            if dispatch.client not in seen:
                seen.add(dispatch.client)
                if now - self.began(dispatch.ticket, dispatch.client) > limit:
                    late.append(dispatch)
        return late

    def snapshot(self) -> dict[str, Any]:
        return {
            "handed_out_at": list(self.handed_out_at.items()),
            "free_since": list(self.free_since.items()),
            "given_up": list(self.given_up.items()),
            "faults": list(self.faults.items()),
            "set_aside": sorted(self.set_aside),
            "refused": self.refused,
            "norms": self.norms.known(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.handed_out_at, self.free_since = dict(snapshot["handed_out_at"]), dict(snapshot["free_since"])
        self.given_up, self.faults = dict(snapshot["given_up"]), dict(snapshot["faults"])
        self.set_aside, self.refused = set(snapshot["set_aside"]), snapshot["refused"]
        self.norms = Norms(self._limits, snapshot["norms"])
