"""The arena's results as files: a table with a row for each cell and strategy, and everything as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asyncfed.analysis.csv_text import csv_text, format_cell, interval_columns
from asyncfed.arena.arena import ArenaResults
from asyncfed.arena.summary import MEASURES, Row
from asyncfed.core.record import to_plain
from asyncfed.runs.result_files import write_texts
from asyncfed.strategies.algorithm import algorithm_named
from asyncfed.version import __version__


def flat_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A plain row for each cell and strategy; what is not known is None.

    Of each measure: the geometric mean over seeds and its 95 % interval, the same of the ratio to the baseline, the
    ratio to the best of the cell, rank and group.
    """
    return [_flat(row) for row in rows]


def _flat(row: Row) -> dict[str, Any]:
    entry, algorithm = row.entry, algorithm_named(row.entry.strategy)
    flat: dict[str, Any] = {
        "problem": entry.cell.problem,
        "delays": entry.cell.delays,
        "split": entry.cell.split,
        "strategy": entry.strategy,
        "family": algorithm.family,
        "timing": algorithm.timing,
        "verdict": row.verdict,
        "reason": row.reason,
        "learning_rate": entry.rate,
        "local_steps": entry.steps,
        "time_limit": entry.limit,
        "seeds": len(entry.seeds),
        "left": row.left,
    }
    for measure in MEASURES:
        found = row.measures[measure]
        flat |= interval_columns(measure, found.cost) | interval_columns(f"{measure}_to_baseline", found.ratio)
        flat[f"{measure}_to_best"] = found.to_best
        flat[f"{measure}_reached"] = found.reached
        flat[f"{measure}_rank"] = found.standing.rank
        flat[f"{measure}_group"] = found.standing.group
    flat["times"] = ";".join("" if run.time is None else format_cell(run.time) for run in entry.runs)
    return flat


def write_tables(results: ArenaResults, rows: Sequence[Row], folder: Path) -> tuple[Path, Path]:
    """Write results.csv and results.json into a folder, and answer with their paths."""
    plain = {
        "asyncfed": __version__,
        "code": results.code,
        "plan": to_plain(results.plan),
        "entries": [to_plain(entry) for entry in results.entries],
    }
    text = json.dumps(plain, allow_nan=False, separators=(",", ":")) + "\n"
    table, everything = write_texts(folder, {"results.csv": csv_text(flat_rows(rows)), "results.json": text})
    return table, everything
