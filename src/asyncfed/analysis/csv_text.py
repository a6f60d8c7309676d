"""Rows of values as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from asyncfed.analysis.statistics import Interval


def format_cell(value: Any) -> str:
    """A value of the table as text: numbers to 8 digits, None as nothing.

    >>> format_cell(None), format_cell(1 / 3), format_cell(12)
    ('', '0.33333333', '12')
    """
    if value is None:
        return ""
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as CSV with a head line."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(list(rows[0]) if rows else [])
    writer.writerows([format_cell(value) for value in row.values()] for row in rows)
    return file.getvalue()


def interval_columns(name: str, interval: Interval | None) -> dict[str, Any]:
    """An interval as three columns: NAME, NAME_low and NAME_high; None where there is none.

    >>> interval_columns("ratio", None)
    {'ratio': None, 'ratio_low': None, 'ratio_high': None}
    """
    ends = (None, None, None) if interval is None else (interval.mean, interval.low, interval.high)
    return {f"{name}{end}": value for end, value in zip(("", "_low", "_high"), ends, strict=True)}
