"""A run in a list of many: read from the header and the last rows of its file, not from its events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.run_state import find_state, kind_of_run, last_change
from asyncfed.dashboard.run_summary import progress_share
from asyncfed.report.strategy_label import strategy_label
from asyncfed.store.error_messages import explain_damage
from asyncfed.store.journal_head import JournalHead, read_head

SPARK_POINTS = 60

NOTHING = (
    *("strategy", "kind", "holder", "rounds", "updates", "elapsed", "progress", "objective", "num_clients"),
    "schema_version",
)
"""What is not known of a file that cannot be read."""


def make_card(name: str, path: Path) -> dict[str, Any]:
    """What the list of runs says of this one; of a file that cannot be read, why."""
    try:
        head = read_head(path, SPARK_POINTS - 1)
        with explain_damage(path, "row"):
            card = _describe(head, path)
    except JournalError as error:
        unreadable = {"name": path.stem, "state": "unreadable", "reason": str(error), "spark": [], "warnings": 0}
        card = {**dict.fromkeys(NOTHING), **unreadable}
    return {"id": name, "file": path.name, "changed": last_change(path), **card}


def _describe(head: JournalHead, path: Path) -> dict[str, Any]:
    state, holder = find_state(path, head.header, head.schema_version)
    reached = {"rounds": head.rounds, "updates": head.updates, "elapsed": as_number(head.elapsed)}
    spark = [_objective(text) for text in head.metrics]
    experiment = head.header["experiment"]
    return {
        "name": str(experiment.get("name", path.stem)),
        "strategy": strategy_label(experiment["strategy"]),
        "state": state,
        "reason": None if state == "running" else str(head.header.get("reason", "")),
        "holder": holder,
        "kind": kind_of_run(head.header),
        **reached,
        "progress": progress_share(experiment, reached, state),
        "objective": spark[-1] if spark else None,
        "spark": spark,
        "num_clients": head.header["num_clients"],
        "schema_version": head.schema_version,
        "warnings": int(state in ("diverged", "starved")),
    }


def _objective(text: str) -> float | None:
    """The objective, or what else was measured first."""
    measured = json.loads(text)
    return as_number(measured.get("objective", next(iter(measured.values()), None)))
