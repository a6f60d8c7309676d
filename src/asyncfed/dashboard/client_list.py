"""The clients of a run in a list: found by name, ordered, and as many as a page shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.client_numbers import STATES, ClientNumbers, client_numbers
from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.ticket_bytes import bytes_of_tickets

MOST_CLIENTS = 1000
"""Clients in one answer."""

COUNTS = ("tickets", "merged", "lost", "refused", "dropped", "skipped")
NUMBERS = ("mean_duration", "last_heard", "weight_share", "merge_share", "energy")


def make_client_list(view: RunView, order: str, first: int, count: int, find: str) -> dict[str, Any]:
    """Clients `first` to `first + count` of those whose name has the text `find` in it."""
    with view.lock:
        numbers = client_numbers(view)
        clients = matching_clients(view, numbers.order(order), find)
        chosen = clients[first : first + min(count, MOST_CLIENTS)]
        return {"total": len(clients), "order": order, "clients": [client_row(view, numbers, int(c)) for c in chosen]}


def matching_clients(view: RunView, clients: np.ndarray, find: str) -> np.ndarray:
    """Those of these clients that have the text in their name, whatever its case."""
    if not find:
        return clients
    wanted = find.casefold()
    return np.array([c for c in clients.tolist() if wanted in view.client_name(c).casefold()], np.int64)


def client_row(view: RunView, numbers: ClientNumbers, client: int) -> dict[str, Any]:
    """What a list says of one client. Its bytes are its tickets times what a ticket of the run takes on average."""
    down, up = bytes_of_tickets(view)
    sent = numbers.tickets[client] * down
    replied = (numbers.merged + numbers.dropped + numbers.waiting)[client] * up
    return {
        "client": client,
        "name": view.client_name(client),
        "state": STATES[numbers.state[client]],
        "since": as_number(numbers.since[client]),
        **{name: int(getattr(numbers, name)[client]) for name in COUNTS},
        **{name: as_number(getattr(numbers, name)[client]) for name in NUMBERS},
        "bytes_down": as_number(sent),
        "bytes_up": as_number(replied),
        "filtered": int(view.filtered[client]),
        "memory_lost": int((view.tickets["client"][view.memory_lost] == client).sum()),
    }
