"""The study's results as files: a table of cells, one of claims, and everything as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asyncfed.analysis.csv_text import csv_text, interval_columns
from asyncfed.communication.claims import Claim, judge
from asyncfed.communication.study import StudyResults
from asyncfed.communication.summary import MEASURES, Row
from asyncfed.core.record import to_plain
from asyncfed.runs.result_files import write_texts
from asyncfed.version import __version__


def cell_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A plain row for each cell; what is not known, such as the cost of a target never reached, is None."""
    return [_cell(row) for row in rows]


def _cell(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {
        **to_plain(row.cell),
        "learning_rate": row.rate,
        "verdict": row.verdict,
        "reason": row.reason,
        "seeds": len(row.runs),
        "reached": row.reached,
        **interval_columns("least_left", row.least_left),
    }
    for measure in MEASURES:
        saving = row.savings[measure]
        flat |= interval_columns(measure, saving.cost) | interval_columns(f"{measure}_saved", saving.ratio)
    return flat | interval_columns("uploads_saved_at_same_rate", row.uploads_at_same_rate)


def _claim(claim: Claim) -> dict[str, Any]:
    plain = to_plain(claim)
    del plain["interval"]
    return {**plain, **interval_columns("number", claim.interval)}


def write_tables(results: StudyResults, rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write results.csv, claims.csv and results.json into a folder, and answer with their paths."""
    everything = {
        "asyncfed": __version__,
        "code": results.code,
        "entries": [to_plain(entry) for entry in results.entries],
    }
    return write_texts(
        folder,
        {
            "results.csv": csv_text(cell_rows(rows)),
            "claims.csv": csv_text([_claim(claim) for claim in judge(rows)]),
            "results.json": json.dumps(everything, allow_nan=False, separators=(",", ":")) + "\n",
        },
    )
