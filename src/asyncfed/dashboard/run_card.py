"""A run in a list of many: read from the header and the last rows of its file, not from its events."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.run_state import RunState, find_state, kind_of_run, last_change
from asyncfed.dashboard.run_summary import progress_share
from asyncfed.report.strategy_label import strategy_label
from asyncfed.store.error_messages import explain_damage, explain_errors
from asyncfed.store.header import read_header
from asyncfed.store.journal_tail import open_read_only

SPARK_POINTS = 60

SPARK = """
SELECT metrics FROM (
    SELECT metrics, row_number() OVER (ORDER BY updates) AS place, count(*) OVER () AS total FROM evaluations
) WHERE place % (1 + total / :points) = 0 OR place = total
"""


def make_card(name: str, path: Path) -> dict[str, Any]:
    """What the list of runs says of this one; of a file that cannot be read, why."""
    try:
        with explain_errors(path), closing(open_read_only(path)) as connection:
            connection.execute("BEGIN")
            card = _read(connection, path)
            connection.execute("COMMIT")
    except JournalError as error:
        card = unreadable(path, str(error))
    return {"id": name, "file": path.name, "changed": last_change(path), **card}


def unreadable(path: Path, reason: str) -> dict[str, Any]:
    """The card of a file that is no run, or a damaged one."""
    empty = dict.fromkeys(("strategy", "kind", "holder", "rounds", "updates", "elapsed", "progress", "objective"))
    return {**empty, "name": path.stem, "state": "unreadable", "reason": reason, "spark": [], "num_clients": None,
            "version": 0, "warnings": 0}  # fmt: skip


def _read(connection: sqlite3.Connection, path: Path) -> dict[str, Any]:
    header = read_header(path, connection.execute("SELECT name, value FROM header").fetchall())
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    state = find_state(path, header, version)
    rounds = connection.execute("SELECT round, updates, elapsed FROM rounds ORDER BY round DESC LIMIT 1").fetchone()
    last = connection.execute(
        "SELECT round, updates, elapsed FROM evaluations ORDER BY updates DESC LIMIT 1"
    ).fetchone()
    with explain_damage(path, "row"):
        reached = dict(
            zip(("rounds", "updates", "elapsed"), max(rounds or (0, 0, 0.0), last or (0, 0, 0.0)), strict=True)
        )
        spark = [_objective(text) for (text,) in connection.execute(SPARK, {"points": SPARK_POINTS - 1})]
        experiment = header["experiment"]
        return {
            "name": str(experiment.get("name", path.stem)),
            "strategy": strategy_label(experiment["strategy"]),
            **describe_state(state, str(header.get("reason", ""))),
            "kind": kind_of_run(header),
            **{key: as_number(value) for key, value in reached.items()},
            "progress": progress_share(experiment, reached, state.state),
            "objective": spark[-1] if spark else None,
            "spark": spark,
            "num_clients": header["num_clients"],
            "version": version,
            "warnings": int(state.state in ("diverged", "starved")),
        }


def describe_state(state: RunState, reason: str) -> dict[str, Any]:
    """The state of a run, who writes it and, if it is over, why."""
    return {"state": state.state, "holder": state.holder, "reason": None if state.state == "running" else reason}


def _objective(text: str) -> float | None:
    measured = json.loads(text)
    value = measured.get("objective", next(iter(measured.values()), None))
    return as_number(value)
