"""Replies that were refused, and updates that the strategy's rule filtered: whose, when and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.ticket_table import ClientEvent
from asyncfed.store.schema import REFUSED


def make_refusals(view: RunView, first: int, count: int, client: int | None = None) -> dict[str, Any]:
    """The last refusals first; with `client`, those of this one alone."""
    with view.lock:
        events = [
            event
            for event in reversed(view.tickets.client_events)
            if event.kind == REFUSED and client in (None, event.client)
        ]
        filtered = view.filtered
        named = np.flatnonzero(filtered) if client is None else np.array([client])[filtered[[client]] > 0]
        ordered = named[np.argsort(-filtered[named], kind="stable")][:count].tolist()
        return {
            "total": len(events),
            "refusals": [refusal_row(view, event) for event in events[first : first + count]],
            "filtered": [{"client": c, "name": view.client_name(c), "count": int(filtered[c])} for c in ordered],
        }


def refusal_row(view: RunView, event: ClientEvent) -> dict[str, Any]:
    """A refusal as pages show it."""
    return {
        "time": as_number(event.time),
        "client": event.client,
        "name": view.client_name(event.client),
        "ticket": event.ticket if event.ticket >= 0 else None,
        "reason": view.text(event.detail),
        "is_fault": event.is_fault,
    }
