"""Whose updates were filtered, dropped or refused in a run, how often, when last and why; from its journal alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from asyncfed.store.events import Event
from asyncfed.store.loss_reasons import SET_ASIDE
from asyncfed.store.schema import DISPATCH, DROP, LEAVE, MERGE, REFUSED, REPORT

FILTERED = "filtered/"
"""How the names begin under which a rule writes down the tickets that it filtered, with their scores."""


class FilteredClient(NamedTuple):
    """A client some of whose updates had no part in the model, or that was excluded.

    Args:
        client: its number.
        updates: how many updates it sent, refused ones included.
        filtered: how many of them a rule filtered.
        dropped: how many the strategy dropped.
        refused: how many were refused as faults.
        last: when the last of these happened, in seconds since the run began.
        reason: why that was.
        excluded: whether it was excluded for its faults.
    """

    client: int
    updates: int
    filtered: int
    dropped: int
    refused: int
    last: float
    reason: str
    excluded: bool

    @property
    def share(self) -> float:
        """The share of its updates that had no part in the model."""
        return (self.filtered + self.dropped + self.refused) / max(1, self.updates)


def filtered_clients(events: Iterable[Event]) -> list[FilteredClient]:
    """A row for each client that had an update filtered, dropped or refused, or was excluded; by number.

    Args:
        events: all events of a run from its first on.
    """
    client_of: dict[int, int] = {}
    counts: dict[str, Counter[int]] = {name: Counter() for name in ("updates", "filtered", "dropped", "refused")}
    last: dict[int, tuple[float, str]] = {}
    excluded: set[int] = set()
    for event in events:
        if event.kind == DISPATCH:
            client_of[event.require_ticket()] = event.require_client()
        elif event.kind == REPORT:
            counts["updates"][event.require_client()] += 1
        elif event.kind == MERGE:
            for ticket, score in filtered_tickets(event).items():
                client = client_of[ticket]
                counts["filtered"][client] += 1
                last[client] = (event.time, f"it was far from the others' (score {score:.3g})")
        elif event.kind == DROP:
            client = event.require_client()
            counts["dropped"][client] += 1
            last[client] = (event.time, event.reason or "dropped")
        elif event.kind == REFUSED and event.is_fault:
            client = event.require_client()
            counts["updates"][client] += 1
            counts["refused"][client] += 1
            last[client] = (event.time, event.require_reason())
        elif event.kind == LEAVE and event.reason == SET_ASIDE:
            excluded.add(event.require_client())
    updates, filtered, dropped, refused = counts.values()
    return [
        FilteredClient(c, updates[c], filtered[c], dropped[c], refused[c], when, why, c in excluded)
        for c, (when, why) in sorted(last.items())
    ]


def filtered_tickets(merge: Event) -> dict[int, float]:
    """The tickets that the rule filtered in a merge, with their scores."""
    if merge.detail is None or FILTERED not in merge.detail:
        return {}
    found = merge.info.items()
    return {int(name.removeprefix(FILTERED)): float(score) for name, score in found if name.startswith(FILTERED)}
