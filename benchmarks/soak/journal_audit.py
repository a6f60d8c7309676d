"""An independent reader of a run's file: it uses SQLite and MessagePack, and nothing of AsyncFed.

It follows docs/journal.md. Every ticket is sent once, answered at most once, merged at most once and only after it was
answered; versions go up by one with each merge; nothing is missing in the sequence. With the counting model it also
holds the model against the merges, client by client.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

DISPATCH, REPORT, MERGE, DROP, LOST, JOIN, LEAVE, STOP, REFUSED, WAKE, CANCEL, SKIPPED = range(12)


class Audit(NamedTuple):
    """What the file says, and what in it contradicts itself (nothing, if all is well)."""

    events: int
    merges: int
    lost: int
    out: int
    """Tickets that were sent and are neither merged nor closed: those in flight when the file was read."""
    counts: np.ndarray
    """How often each client was merged."""
    contradictions: list[str]


def audit(path: Path, clients: int) -> Audit:
    """Read the whole file."""
    with closing(_open(path)) as file:
        details = dict(file.execute("SELECT id, text FROM details"))
        found = _follow(_events(file), details, clients)
        (last_row,) = file.execute("SELECT max(updates) FROM rounds").fetchone()
        if last_row is not None and last_row > found.merges:
            found.contradictions.append(f"the table of rounds counts {last_row} updates, the events {found.merges}")
        _compare_with_model(file, found)
    return found


def prefix_digest(path: Path, count: int | None = None) -> tuple[int, str]:
    """How many events there are, or `count` of them, and the SHA-256 of their bytes."""
    digest, read = sha256(), 0
    with closing(_open(path)) as file:
        for block in _blocks(file):
            rows = msgspec.msgpack.decode(block, type=list[msgspec.Raw])
            for row in rows[: None if count is None else count - read]:
                digest.update(row)
                read += 1
            if read == count:
                break
    return read, digest.hexdigest()


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30.0)


def _blocks(file: sqlite3.Connection) -> Iterator[bytes]:
    """Each block with MessagePack's head of an array before it."""
    for count, rows in file.execute("SELECT count, rows FROM events ORDER BY first_seq"):
        yield b"\xdd" + count.to_bytes(4, "big") + rows


def _events(file: sqlite3.Connection) -> Iterator[list[Any]]:
    for block in _blocks(file):
        yield from msgspec.msgpack.decode(block)


def _follow(events: Iterator[list[Any]], details: dict[int, str], clients: int) -> Audit:
    owner: dict[int, int] = {}
    answered: set[int] = set()
    counts = np.zeros(clients, np.int64)
    wrong: list[str] = []
    number = merges = lost = version = highest = 0
    now = 0.0
    for seq, time, kind, ticket, client, at, *_, detail in events:
        if seq != number:
            wrong.append(f"event {number} is missing, {seq} follows")
        number = seq + 1
        if time < now:
            wrong.append(f"event {seq} is at {time} s, after one at {now} s")
        now = time
        if kind == DISPATCH:
            if ticket < highest:
                wrong.append(f"ticket {ticket} was sent twice, event {seq}")
            highest = ticket + 1
            owner[ticket] = client
        elif kind == REPORT:
            if owner.get(ticket) == client and ticket not in answered:
                answered.add(ticket)
            else:
                wrong.append(f"ticket {ticket} of client {client} was answered twice or never sent, event {seq}")
        elif kind == MERGE:
            version += 1
            if at != version:
                wrong.append(f"a merge leads to version {at}, after {version - 1}, event {seq}")
            tickets = [ticket] if ticket is not None else msgspec.json.decode(details[detail])["tickets"]
            for merged in tickets:
                if merged not in answered:
                    wrong.append(f"ticket {merged} was merged twice or without an answer, event {seq}")
                    continue
                answered.remove(merged)
                counts[owner.pop(merged)] += 1
                merges += 1
        elif kind in (DROP, LOST, CANCEL, SKIPPED):
            if owner.pop(ticket, None) is None:
                wrong.append(f"ticket {ticket} ended twice, event {seq}")
            answered.discard(ticket)
            lost += kind == LOST
    wrong += [f"ticket {ticket} was answered and never merged" for ticket in sorted(answered)]
    return Audit(number, merges, lost, len(owner), counts, wrong)


def _compare_with_model(file: sqlite3.Connection, found: Audit) -> None:
    """The model of a checkpoint after the last event, as of a run that ended, must count each client's merges."""
    seq, blob = file.execute("SELECT seq, arrays FROM checkpoints ORDER BY seq DESC LIMIT 1").fetchone()
    if seq != found.events:
        return
    with np.load(BytesIO(blob), allow_pickle=False) as arrays:
        model = arrays["params"]
    for client in np.flatnonzero(model != found.counts):
        found.contradictions.append(
            f"the model counts {model[client]:.0f} merges of client {client}, the events {found.counts[client]}"
        )
