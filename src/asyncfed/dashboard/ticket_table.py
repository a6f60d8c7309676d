"""All tickets of a run as columns of numbers, filled from its events a batch at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.event_columns import EventColumns
from asyncfed.store.schema import CANCEL, DISPATCH, DROP, JOIN, LEAVE, LOST, MERGE, REFUSED, REPORT, SKIPPED, STOP

OUTCOMES = ("in flight", "waiting", "merged", "lost", "dropped", "cancelled", "skipped")
IN_FLIGHT, WAITING, MERGED, WAS_LOST, DROPPED, CANCELLED, WAS_SKIPPED = range(len(OUTCOMES))

COLUMNS: dict[str, tuple[Any, Any]] = {
    "client": (np.int64, -1),
    "sent": (np.float64, np.nan),
    "base": (np.int64, 0),
    "ended": (np.float64, np.nan),
    "outcome": (np.uint8, IN_FLIGHT),
    "duration": (np.float64, np.nan),
    "energy": (np.float64, 0.0),
    "merged": (np.float64, np.nan),
    "staleness": (np.int32, -1),
    "weight": (np.float64, 0.0),
    "detail": (np.int64, -1),
}
"""By ticket: its client, when it was sent, from which version, when it was answered or given up, what became of it, the
seconds of work, joules, when it was merged, how stale, with what weight; the text of its report or its reason."""


class ClientEvent(NamedTuple):
    """Something rare about a client: it joined, left, or a reply of its was refused. -1 is none."""

    seq: int
    time: float
    kind: int
    ticket: int
    client: int
    is_fault: bool
    detail: int


class TicketTable:
    """Grows with the run. Tickets are numbered from 0 without gaps, so a ticket's number is its place."""

    def __init__(self) -> None:
        self.count = 0
        self.now = 0.0
        self.version = 0
        self.num_events = 0
        self.client_events: list[ClientEvent] = []
        self.stopped: int | None = None
        """The text of why the run stopped, if it did."""
        self._columns = {name: np.empty(0, kind) for name, (kind, _) in COLUMNS.items()}

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column][: self.count]

    def add(self, events: EventColumns, details: Mapping[int, str]) -> None:
        """Take a batch of events in. `details` has the texts that merges of several tickets refer to."""
        if not len(events.seq):
            return
        self.num_events, self.now = int(events.seq[-1]) + 1, float(events.time[-1])
        self.version = int(events.version[-1])
        by_kind = {int(kind): np.flatnonzero(events.kind == kind) for kind in np.unique(events.kind)}
        # Within a batch a ticket is dispatched before it is answered, and answered before it is merged or dropped.
        self._dispatch(_select(events, by_kind.get(DISPATCH)))
        for kind, outcome in ((REPORT, WAITING), (SKIPPED, WAS_SKIPPED), (LOST, WAS_LOST), (CANCEL, CANCELLED)):
            self._end(outcome, _select(events, by_kind.get(kind)))
        self._merge(_select(events, by_kind.get(MERGE)), details)
        self._drop(_select(events, by_kind.get(DROP)))
        self._note(_select(events, np.flatnonzero(np.isin(events.kind, (JOIN, LEAVE, REFUSED)))))
        if STOP in by_kind:
            self.stopped = int(events.detail[by_kind[STOP][-1]])

    def _note(self, events: EventColumns) -> None:
        rows = zip(*(column.tolist() for column in events), strict=True)
        for seq, time, kind, ticket, client, _, a, _, detail in rows:
            self.client_events.append(ClientEvent(seq, time, kind, ticket, client, kind == REFUSED and a > 0, detail))
            if kind == LEAVE:
                self._leave(client, time, detail)

    def _dispatch(self, events: EventColumns) -> None:
        if len(events.ticket):
            self._grow(int(events.ticket.max()) + 1)
            self["client"][events.ticket] = events.client
            self["sent"][events.ticket] = events.time
            self["base"][events.ticket] = events.version

    def _grow(self, count: int) -> None:
        room = len(self._columns["client"])
        if count > room:
            for name, (kind, empty) in COLUMNS.items():
                larger = np.full(max(count, 2 * room, 1024), empty, kind)
                larger[:room] = self._columns[name]
                self._columns[name] = larger
        self.count = max(self.count, count)

    def _end(self, outcome: int, events: EventColumns) -> None:
        tickets = events.ticket
        self["ended"][tickets] = events.time
        self["outcome"][tickets] = outcome
        self["duration"][tickets] = events.a
        self["energy"][tickets] = np.nan_to_num(events.b)
        self["detail"][tickets] = events.detail

    def _merge(self, events: EventColumns, details: Mapping[int, str]) -> None:
        single = events.ticket >= 0
        self._merge_tickets(*(column[single] for column in (events.ticket, events.time, events.version, events.a)))
        several = [json.loads(details[number]) for number in events.detail[~single].tolist()]
        if several:
            sizes = [len(merge["tickets"]) for merge in several]
            tickets = np.array([ticket for merge in several for ticket in merge["tickets"]], np.int64)
            weights = np.array([weight for merge in several for weight in merge["weights"]], np.float64)
            times, versions = events.time[~single], events.version[~single]
            self._merge_tickets(tickets, np.repeat(times, sizes), np.repeat(versions, sizes), weights)

    def _merge_tickets(self, tickets: Any, times: Any, versions: Any, weights: Any) -> None:
        self["outcome"][tickets] = MERGED
        self["merged"][tickets] = times
        self["staleness"][tickets] = versions - 1 - self["base"][tickets]
        self["weight"][tickets] = weights

    def _drop(self, events: EventColumns) -> None:
        self["outcome"][events.ticket] = DROPPED
        self["detail"][events.ticket] = events.detail

    def _leave(self, client: int, time: float, detail: int) -> None:
        """Tickets that a client had when it left are lost without events of their own."""
        ended = self["ended"]
        gone = (self["client"] == client) & (self["sent"] <= time) & ~(ended <= time)
        self["outcome"][gone] = WAS_LOST
        ended[gone] = time
        self["detail"][gone] = detail


def _select(events: EventColumns, places: NDArray[np.int64] | None) -> EventColumns:
    """The events at these places; none, if there are no such places."""
    columns: list[Any] = [column[:0] if places is None else column[places] for column in events]
    return EventColumns(*columns)
