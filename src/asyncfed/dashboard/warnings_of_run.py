"""What somebody who opens a run must not miss: clients left out, set aside or silent, and numbers gone wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.client_numbers import LEFT, NEVER_HEARD, SET_ASIDE, SILENT, ClientNumbers, client_numbers
from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.run_view import RunView

FAIR_CHANCE = 5
"""A client without a merged update is left out once the others have so many on average."""

MOST_BY_NAME = 20
"""Clients of each kind with a warning of their own; of more there is one warning that counts the rest."""


def left_out_clients(view: RunView) -> list[dict[str, Any]]:
    """Clients of which nothing was merged although the others had their chance, each with what is known of why."""
    return view.computed("left out", lambda: _left_out(view))


def _left_out(view: RunView) -> list[dict[str, Any]]:
    numbers = client_numbers(view)
    never = numbers.merged == 0
    others = int((~never).sum())
    is_over = view.state.state in ("finished", "diverged", "starved")
    if not others or (numbers.merged.sum() / others < FAIR_CHANCE and not is_over):
        return []
    return [
        {"client": client, "name": view.client_name(client), "reason": _why(numbers, client)}
        for client in np.flatnonzero(never).tolist()
    ]


def _why(numbers: ClientNumbers, client: int) -> str:
    state = numbers.state[client]
    if state == SET_ASIDE:
        return "it was set aside for its faults"
    if state == LEFT:
        return "it left the run"
    if not numbers.tickets[client]:
        return "it was never given work" if state != NEVER_HEARD else "it was never given work, and never heard from"
    counts = {
        "were lost": numbers.lost[client],
        "were dropped by the strategy": numbers.dropped[client],
        "were cancelled": numbers.cancelled[client],
        "were skipped: it had nothing worth sending": numbers.skipped[client],
        "are still out": numbers.in_flight[client],
        "wait to be merged": numbers.waiting[client],
    }
    what = max(counts, key=lambda name: int(counts[name]))
    return f"{counts[what]} of its {numbers.tickets[client]} tickets {what}"


def find_warnings(view: RunView) -> list[dict[str, Any]]:
    """All warnings, the gravest first."""
    numbers = client_numbers(view)
    found = [*_about_run(view)]
    left_out = left_out_clients(view)
    found += _by_client(
        "alarm", "left out", [(row["client"], f"nothing of it was merged: {row['reason']}", None) for row in left_out],
        view,
    )  # fmt: skip
    is_running = view.state.state == "running"
    for state, level, kind, text in (
        (SET_ASIDE, "alarm", "set aside", "it was set aside for its faults; nothing of it is accepted any more"),
        (SILENT, "warning", "silent", "nothing was heard of it"),
        (LEFT, "warning", "left", "it left the run"),
    ):
        if state != SET_ASIDE and not is_running:
            continue
        clients = np.flatnonzero(numbers.state == state).tolist()
        found += _by_client(level, kind, [(client, text, as_number(numbers.since[client])) for client in clients], view)
    if len(view.memory_lost):
        text = f"Clients lost what they remember {len(view.memory_lost)} times and began anew."
        found.append(_warning("warning", "memory lost", text, None, None))
    return found


def _about_run(view: RunView) -> list[dict[str, Any]]:
    state, reason = view.state.state, str(view.header.get("reason", ""))
    if state in ("diverged", "starved"):
        return [_warning("alarm", state, f"The run {'has ' if state == 'diverged' else 'was '}{state}: {reason}.", None,
                         None)]  # fmt: skip
    if state == "interrupted":
        text = "The run was interrupted. `asyncfed resume` continues it."
        return [_warning("note", state, text, None, None)]
    return []


def _by_client(level: str, kind: str, rows: list[tuple[int, str, float | None]], view: RunView) -> list[dict[str, Any]]:
    found = [
        _warning(level, kind, f"Client {view.client_name(client)}: {text}.", client, since)
        for client, text, since in rows[:MOST_BY_NAME]
    ]
    if len(rows) > MOST_BY_NAME:
        found.append(_warning(level, kind, f"{len(rows) - MOST_BY_NAME} more clients: {kind}.", None, None))
    return found


def _warning(level: str, kind: str, text: str, client: int | None, since: float | None) -> dict[str, Any]:
    return {"level": level, "kind": kind, "text": text, "client": client, "since": since}
