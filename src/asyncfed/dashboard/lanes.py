"""Swim lanes: what each client was doing when, in at most as many pieces as a screen can show."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.ticket_phases import Phases, ticket_phases
from asyncfed.dashboard.ticket_table import CANCELLED, IN_FLIGHT, WAS_LOST
from asyncfed.store.loss_reasons import SET_ASIDE as SET_ASIDE_REASON
from asyncfed.store.schema import JOIN, LEAVE, REFUSED

CODES = (
    "idle",
    "waiting",
    "download",
    "train",
    "upload",
    "lost",
    "cancelled",
    "in flight",
    "refused",
    "set aside",
    "away",
)
IDLE, WAITS, DOWNLOAD, TRAIN, UPLOAD, LOST, GIVEN_UP, OUT, REFUSED_REPLY, SET_ASIDE, AWAY = range(len(CODES))

Absence = tuple[float, float | None, int]
"""When it began, when it ended if it did, and its code."""

PIXELS_OF_A_TICKET = 2
"""Where tickets have fewer pixels each, a lane is sent as bins."""

MOST_CLIENTS = 200
"""Lanes in one answer; a page asks for those it shows."""

MOST_MERGES = 2000
"""Merges in one answer; where there are more, marks would cover the lanes."""


def make_lanes(view: RunView, clients: np.ndarray, begin: float, end: float, width: int) -> list[dict[str, Any]]:
    """A lane for each of these clients between two moments, `width` pieces wide at most.

    A lane is `segments`, lists of (begin, end, code, ticket), or, where they would not be told apart, `bins`: for each
    piece the code of what counts most in it and the share of it that was filled.
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
        absences = _absences(view, wanted)
        now = view.now
    lanes = []
    for client in clients.tolist():
        first, last = np.searchsorted(owners, (client, client + 1)).tolist()
        part = {name: column[first:last] for name, column in columns.items()}
        lane: dict[str, Any] = {"client": client, "name": view.client_name(client), "segments": None, "bins": None}
        if (last - first) * PIXELS_OF_A_TICKET > width:
            lane["bins"] = _bins(part, begin, end, width, absences.get(client, []), now)
        else:
            phases = ticket_phases(view, owners[first:last], chosen[first:last])
            lane["segments"] = _segments(part, chosen[first:last], phases)
            lane["segments"] += [
                [since, until if until is not None else now, code, -1]
                for since, until, code in absences.get(client, [])
                if since <= end and (until is None or until >= begin)
            ]
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


def _absences(view: RunView, wanted: np.ndarray) -> dict[int, list[Absence]]:
    """When clients were set aside or away: from leaving until they joined again, or until now."""
    found: dict[int, list[Absence]] = {}
    for event in view.tickets.client_events:
        if not 0 <= event.client < len(wanted) or not wanted[event.client]:
            continue
        spans = found.setdefault(event.client, [])
        if event.kind == LEAVE:
            spans.append((event.time, None, SET_ASIDE if view.text(event.detail) == SET_ASIDE_REASON else AWAY))
        elif event.kind == JOIN and spans and spans[-1][1] is None:
            spans[-1] = (spans[-1][0], event.time, spans[-1][2])
        elif event.kind == REFUSED and event.is_fault:
            spans.insert(0, (event.time, event.time, REFUSED_REPLY))
    return found


def _segments(part: dict[str, np.ndarray], tickets: np.ndarray, phases: Phases | None) -> list[list[float]]:
    sent, ended, begun = part["sent"], part["ended"], _begun(part)
    codes = _codes(part["outcome"])
    worked = codes == TRAIN
    received, sending = sent.copy(), ended.copy()
    if phases is not None:  # known of whole tickets only
        received[worked] = np.minimum(sent + phases.download, ended)[worked]
        sending[worked] = np.maximum(ended - phases.upload, received)[worked]
        # The duration of a ticket is that of all three parts; a wait for the client lies between the first two.
        begun = np.minimum(begun + (received - sent), sending)
    segments: list[list[float]] = []
    columns = (sent, received, begun, sending, ended, codes, tickets)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        at, has, begins, sends, ends, code, ticket = row
        for since, until, what in ((at, has, DOWNLOAD), (has, begins, WAITS), (sends, ends, UPLOAD)):
            if until > since:
                segments.append([_short(since), _short(until), what, ticket])
        segments.append([_short(begins), _short(sends), code, ticket])
    return segments


def _short(seconds: float) -> float:
    return round(seconds, 6)


def _bins(
    part: dict[str, np.ndarray], begin: float, end: float, width: int, absences: list[Absence], now: float
) -> list[list[float]]:
    """By piece: a loss or a cancelled ticket shows wherever there is one; otherwise the share of the time at work."""
    size = (end - begin) / width
    begun, ended = np.maximum(_begun(part), begin), np.minimum(part["ended"], end)
    first = np.clip(((begun - begin) / size).astype(np.int64), 0, width - 1)
    last = np.clip(((ended - begin) / size).astype(np.int64), 0, width - 1)
    codes, shown = _codes(part["outcome"]), np.full(width, IDLE)
    for code in np.unique(codes):  # ascending: what counts more covers what counts less
        of_code = codes == code
        shown[_cover(first[of_code], last[of_code], width) > 0] = code
    whole = np.maximum(_cover(first + 1, last - 1, width), 0) * size
    within = first == last
    from_first = np.where(within, ended - begun, begin + (first + 1) * size - begun)
    in_last = np.where(within, 0.0, ended - (begin + last * size))
    busy = whole + np.bincount(first, from_first, width) + np.bincount(last, in_last, width)
    share = np.clip(busy / size, 0.0, 1.0)
    for since, until, code in absences:
        places = np.array([since, now if until is None else until])
        place, stop = np.clip((places - begin) / size, 0, width - 1).astype(np.int64).tolist()
        if since <= end and (until is None or until >= begin):
            shown[place : stop + 1], share[place : stop + 1] = code, 1.0
    return [[code, round(part, 3)] for code, part in zip(shown.tolist(), share.tolist(), strict=True)]


def _cover(first: np.ndarray, last: np.ndarray, width: int) -> np.ndarray:
    """For each piece how many of the spans, from `first` to `last` inclusive, have it; empty spans have none."""
    full = last >= first
    starts = np.bincount(first[full], minlength=width + 1)[: width + 1]
    ends = np.bincount(last[full] + 1, minlength=width + 1)[: width + 1]
    covered: np.ndarray = np.cumsum(starts - ends)[:width]
    return covered
