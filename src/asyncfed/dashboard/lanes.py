"""Swim lanes: what each client was doing when, in at most as many pieces as a screen can show."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.ticket_table import CANCELLED, IN_FLIGHT, WAS_LOST

CODES = ("idle", "waiting", "download", "train", "upload", "lost", "cancelled", "in flight", "refused", "set aside")
IDLE, WAITS, DOWNLOAD, TRAIN, UPLOAD, LOST, GIVEN_UP, OUT, REFUSED_REPLY, SET_ASIDE = range(len(CODES))

MOST_CLIENTS = 200
"""Lanes in one answer; a page asks for those it shows."""

MOST_MERGES = 2000
"""Merges in one answer; where there are more, marks would cover the lanes."""


def make_lanes(view: RunView, clients: np.ndarray, begin: float, end: float, width: int) -> list[dict[str, Any]]:
    """A lane for each of these clients between two moments, `width` pieces wide at most.

    A lane is `segments`, lists of (begin, end, code, ticket), or, where there are more than two tickets a piece,
    `bins`: for each piece the code of what filled most of it and the share of it that it filled.
    """
    with view.lock:
        table = view.tickets
        wanted = np.zeros(view.num_clients, bool)
        wanted[clients] = True
        sent, ended = table["sent"], np.where(np.isnan(table["ended"]), view.now, table["ended"])
        chosen = np.flatnonzero(wanted[table["client"]] & (sent <= end) & (ended >= begin))
        chosen = chosen[np.argsort(table["client"][chosen], kind="stable")]
        owners = table["client"][chosen]
        columns = {name: table[name][chosen] for name in ("sent", "duration", "outcome")}
        columns["ended"] = ended[chosen]
    firsts = np.searchsorted(owners, clients, side="left")
    lasts = np.searchsorted(owners, clients, side="right")
    lanes = []
    for client, first, last in zip(clients.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
        part = {name: column[first:last] for name, column in columns.items()}
        lane: dict[str, Any] = {"client": client, "name": view.client_name(client), "segments": None, "bins": None}
        if last - first > 2 * width:
            lane["bins"] = _bins(part, begin, end, width)
        else:
            lane["segments"] = _segments(part, chosen[first:last])
        lanes.append(lane)
    return lanes


def merge_times(view: RunView, clients: np.ndarray, begin: float, end: float) -> list[list[float]] | None:
    """When updates of these clients were merged, with the client; None if there are more than a screen shows."""
    with view.lock:
        merged = view.tickets["merged"]
        places = np.flatnonzero((merged >= begin) & (merged <= end))
        places = places[np.isin(view.tickets["client"][places], clients)]
        if len(places) > MOST_MERGES:
            return None
        return [
            list(pair) for pair in zip(merged[places].tolist(), view.tickets["client"][places].tolist(), strict=True)
        ]


def _codes(outcome: np.ndarray) -> np.ndarray:
    """What the working part of a ticket is shown as."""
    codes = np.full(len(outcome), TRAIN, np.int64)
    for ended, code in ((WAS_LOST, LOST), (CANCELLED, GIVEN_UP), (IN_FLIGHT, OUT)):
        codes[outcome == ended] = code
    return codes


def _begun(part: dict[str, np.ndarray]) -> np.ndarray:
    """When a client could begin with each ticket: when it was sent, or later if it was busy with another."""
    worked = np.where(np.isnan(part["duration"]), part["ended"] - part["sent"], part["duration"])
    begun: np.ndarray = np.maximum(part["sent"], part["ended"] - worked)
    return begun


def _segments(part: dict[str, np.ndarray], tickets: np.ndarray) -> list[list[float]]:
    segments: list[list[float]] = []
    rows = zip(
        part["sent"].tolist(), _begun(part).tolist(), part["ended"].tolist(), _codes(part["outcome"]).tolist(),
        tickets.tolist(), strict=True,
    )  # fmt: skip
    for sent, begun, ended, code, ticket in rows:
        if begun > sent:
            segments.append([sent, begun, WAITS, ticket])
        segments.append([begun, ended, code, ticket])
    return segments


def _bins(part: dict[str, np.ndarray], begin: float, end: float, width: int) -> list[list[float]]:
    """By piece: a loss or a cancelled ticket shows wherever there is one; otherwise the share of the time at work."""
    size = (end - begin) / width
    first = np.clip(((_begun(part) - begin) / size).astype(np.int64), 0, width - 1)
    last = np.clip(((part["ended"] - begin) / size).astype(np.int64), 0, width - 1)
    codes, busy = _codes(part["outcome"]), np.zeros(width)
    shown = np.full(width, IDLE)
    for place, until, code, begun, ended in zip(first, last, codes, _begun(part), part["ended"], strict=True):
        shown[place : until + 1] = np.maximum(shown[place : until + 1], code)
        if place == until:
            busy[place] += ended - begun
        else:
            busy[place] += begin + (place + 1) * size - begun
            busy[until] += ended - (begin + until * size)
            busy[place + 1 : until] += size
    share = np.clip(busy / size, 0.0, 1.0)
    return [[int(code), round(float(part), 3)] for code, part in zip(shown, share, strict=True)]
