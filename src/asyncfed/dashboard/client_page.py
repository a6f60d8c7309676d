"""The page of one client: its tickets, how long they took, how stale they were, and what went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.client_list import client_row
from asyncfed.dashboard.client_numbers import client_numbers
from asyncfed.dashboard.curves import thin
from asyncfed.dashboard.plain_numbers import as_list, as_number
from asyncfed.dashboard.refusals import refusal_row
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.staleness import make_staleness
from asyncfed.dashboard.ticket_table import CANCELLED, DROPPED, OUTCOMES, WAS_LOST
from asyncfed.store.schema import REFUSED

LAST_TICKETS = 200
LAST_FAULTS = 200
BARS = 30
POINTS = 300


class NoSuchClientError(Exception):
    """The run has no client of that number."""


def make_client_page(view: RunView, client: int) -> dict[str, Any]:
    """Everything about one client.

    Raises:
        NoSuchClientError: there is none of that number.
    """
    with view.lock:
        if not 0 <= client < view.num_clients:
            raise NoSuchClientError(f"The run has no client {client}; they are numbered 0 to {view.num_clients - 1}.")
        table = view.tickets
        tickets = np.flatnonzero(table["client"] == client)
        worked = tickets[np.isfinite(table["duration"][tickets]) & (table["outcome"][tickets] != WAS_LOST)]
        durations = table["duration"][worked]
        kept = thin(durations, POINTS)
        refused = [e for e in table.client_events if e.kind == REFUSED and e.client == client][-LAST_FAULTS:]
        return {
            "row": client_row(view, client_numbers(view), client),
            "num_tickets": len(tickets),
            "tickets": [_ticket(view, ticket) for ticket in reversed(tickets[-LAST_TICKETS:].tolist())],
            "durations": _histogram(durations),
            "staleness": make_staleness(view, client),
            "over_time": {"time": as_list(table["ended"][worked][kept]), "duration": as_list(durations[kept])},
            "faults": [refusal_row(view, event) for event in reversed(refused)],
        }


def _ticket(view: RunView, ticket: int) -> dict[str, Any]:
    table = view.tickets
    outcome = int(table["outcome"][ticket])
    staleness = int(table["staleness"][ticket])
    has_reason = outcome in (WAS_LOST, DROPPED, CANCELLED)
    return {
        "ticket": ticket,
        "sent": as_number(table["sent"][ticket]),
        "ended": as_number(table["ended"][ticket]),
        "outcome": OUTCOMES[outcome],
        "duration": as_number(table["duration"][ticket]),
        "staleness": staleness if staleness >= 0 else None,
        "weight": as_number(table["weight"][ticket]),
        "version": int(table["base"][ticket]),
        "reason": view.text(int(table["detail"][ticket])) if has_reason else None,
    }


def _histogram(values: np.ndarray) -> dict[str, Any]:
    """Counts of equally wide bars between the least and the largest value; `edges` is one longer than `counts`."""
    if not len(values):
        return {"edges": [], "counts": []}
    counts, edges = np.histogram(values, bins=BARS)
    return {"edges": as_list(edges), "counts": counts.tolist()}
