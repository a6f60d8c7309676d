"""The study's results as files: tables of cells, break points and costs, and everything as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asyncfed.analysis.csv_text import csv_text, format_cell, interval_columns
from asyncfed.core.record import to_plain
from asyncfed.robustness.defences import DEFENCES
from asyncfed.robustness.scenarios import Scenario
from asyncfed.robustness.study import StudyResults
from asyncfed.robustness.summary import BreakPoint, Cost, Row, break_points, costs
from asyncfed.runs.result_files import write_texts
from asyncfed.version import __version__


def cell_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A plain row for each cell; what is not known is None."""
    return [_cell(row) for row in rows]


def _cell(row: Row) -> dict[str, Any]:
    cell, runs = row.cell, row.result.runs
    return {
        **_scenario(cell.scenario),
        "defence": cell.defence,
        "trusted_data": DEFENCES[cell.defence].trusted,
        "attack": cell.attack,
        "share": cell.share,
        "verdict": row.verdict,
        "reason": row.reason,
        **interval_columns("ratio", row.ratio),
        **interval_columns("points", row.points),
        "lying_arrived": row.lying_arrived,
        "lying_merged": row.lying_merged,
        "precision": row.precision,
        "recall": row.recall,
        "filtered_honest": row.filtered_honest,
        "seeds": len(runs),
        "excess": ";".join(format_cell(run.excess) for run in runs),
        "accuracy": ";".join(format_cell(run.accuracy) for run in runs),
    }


def _break_point(point: BreakPoint) -> dict[str, Any]:
    names = {"defence": point.defence, "attack": point.attack}
    return {**_scenario(point.scenario), **names, "break_point": point.share, "largest_share_run": point.most}


def _cost(cost: Cost) -> dict[str, Any]:
    measured = {"time": cost.time, "level": cost.level, "points": cost.points}
    ratios = {column: end for name, found in measured.items() for column, end in interval_columns(name, found).items()}
    return {**_scenario(cost.scenario), "defence": cost.defence, **ratios, "filtered": cost.filtered}


def _scenario(scenario: Scenario) -> dict[str, Any]:
    return {"problem": scenario.problem, "split": scenario.split, "delays": scenario.delays}


def write_tables(results: StudyResults, rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write results.csv, break_points.csv, costs.csv and results.json into a folder, and answer with their paths."""
    plain = {"asyncfed": __version__, "code": results.code, "seeds": results.plan.seeds}
    everything = {**plain, "cells": [to_plain(result) for result in results.cells]}
    return write_texts(
        folder,
        {
            "results.csv": csv_text(cell_rows(rows)),
            "break_points.csv": csv_text([_break_point(point) for point in break_points(rows)]),
            "costs.csv": csv_text([_cost(cost) for cost in costs(rows)]),
            "results.json": json.dumps(everything, allow_nan=False, separators=(",", ":")) + "\n",
        },
    )
