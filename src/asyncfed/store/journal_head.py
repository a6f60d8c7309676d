"""The head of a run's file: what a list of many runs shows, read without any of its events."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from asyncfed.store.error_messages import explain_damage, explain_errors
from asyncfed.store.header import Header, read_header
from asyncfed.store.journal_tail import open_read_only

THINNED = """
SELECT metrics FROM (
    SELECT metrics, row_number() OVER (ORDER BY updates) AS place, count(*) OVER () AS total FROM evaluations
) WHERE place % (1 + total / :points) = 0 OR place = total
"""

LAST_ROUND = "SELECT round, updates, elapsed FROM rounds ORDER BY round DESC LIMIT 1"
LAST_EVALUATION = "SELECT round, updates, elapsed FROM evaluations ORDER BY updates DESC LIMIT 1"


class JournalHead(NamedTuple):
    """What a file says about itself, how far its run is, and some of its measurements as JSON, the last among them."""

    schema_version: int
    header: Header
    rounds: int
    updates: int
    elapsed: float
    metrics: list[str]


def read_head(path: Path, points: int) -> JournalHead:
    """The head of a run that may be in the middle of being written; at most about `points` measurements.

    Raises:
        JournalError: there is no run, or it is damaged.
    """
    with explain_errors(path), closing(open_read_only(path)) as connection:
        connection.execute("BEGIN")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        header = read_header(path, connection.execute("SELECT name, value FROM header").fetchall())
        reached: list[tuple[Any, ...] | None] = [
            connection.execute(query).fetchone() for query in (LAST_ROUND, LAST_EVALUATION)
        ]
        metrics = [text for (text,) in connection.execute(THINNED, {"points": points})]
        connection.execute("COMMIT")
    with explain_damage(path, "row"):
        furthest = max((row for row in reached if row is not None), default=(0, 0, 0.0))
        return JournalHead(version, header, int(furthest[0]), int(furthest[1]), float(furthest[2]), metrics)
