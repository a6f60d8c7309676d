"""What a benchmark answers with: lines for the table, numbers for the file."""

from __future__ import annotations

from typing import Any, NamedTuple


class Line(NamedTuple):
    """One line of the table. `met` is None where there is no goal."""

    what: str
    measured: str
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None


class Outcome(NamedTuple):
    """`note` is printed below the table."""

    lines: list[Line]
    numbers: dict[str, Any]
    note: str = ""
