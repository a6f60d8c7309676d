"""What is done about commits whose large arrays the disk never got.

Between checkpoints a commit does not wait for the disk. If the power fails, the run's file may then say that a client
sent something which the file beside it does not hold. As SQLite ends its log at the first record that is not whole, the
run then ends before the first commit of which something is missing; a resumed server goes on from there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from asyncfed.core.record import unpack_rows
from asyncfed.store.events import StoredEvent
from asyncfed.store.schema import REPORT, SKIPPED


def cut_before(connection: sqlite3.Connection, since: int, now: float, unreadable: Iterable[int]) -> None:
    """Delete the first commit after a checkpoint that accepted one of these tickets, and all that came after it.

    Args:
        connection: to the run's file, with no transaction open.
        since: how many events there were at the checkpoint.
        now: the run's clock at the checkpoint. Rounds and evaluations that came later are deleted as well: whoever
            repeats the events writes those of them that stay again.
        unreadable: tickets with which something came that is not what it was.
    """
    lost, first, tickets, last_detail = set(unreadable), None, set(), -1
    blocks = connection.execute("SELECT first_seq, count, rows FROM events ORDER BY first_seq").fetchall()
    for first_seq, count, rows in blocks:
        events = unpack_rows(rows, count, StoredEvent)
        answered = {event[3] for event in events if event[2] in (REPORT, SKIPPED)} if first_seq >= since else set()
        if first is None and answered & lost:
            first = first_seq
        if first is not None:
            tickets |= answered
        else:
            last_detail = max([last_detail, *(event[-1] for event in events if event[-1] is not None)])
    if first is None:
        return
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM events WHERE first_seq >= ?", (first,))
    connection.execute("DELETE FROM details WHERE id > ?", (last_detail,))
    connection.execute("DELETE FROM rounds WHERE elapsed > ?", (now,))
    connection.execute("DELETE FROM evaluations WHERE elapsed > ?", (now,))
    for table in ("payloads", "messages", "released", "sent_arrays", "released_arrays"):
        connection.executemany(f"DELETE FROM {table} WHERE ticket = ?", [(ticket,) for ticket in tickets])
    connection.execute("COMMIT")
