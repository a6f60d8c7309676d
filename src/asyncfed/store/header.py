"""The header of a run's file as it is read: names and values, checked before anybody computes with them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.core.record import from_plain

MOST_CLIENTS = 10**12
"""More clients than any run has; a number above it is damage, and arrays of that length would fill the memory."""


TYPES: dict[str, Any] = {
    "asyncfed": str,
    "experiment": dict[str, Any],
    "problem": str,
    "num_clients": int,
    "own_problem": bool,
    "own_delays": bool,
    "live": dict[str, Any],
    "verdict": str,
    "reason": str,
    "sha256": dict[str, str],
}
"""Of what type each entry is; entries that are not named here may be of any."""


class Header(dict[str, Any]):
    """What a run's file says about itself. A name that is missing means damage, and is reported as such."""

    def __init__(self, path: Path | None, entries: dict[str, Any]) -> None:
        super().__init__(entries)
        self.path = path

    def __missing__(self, name: str) -> Any:
        raise JournalError(f'{self.path} is damaged: its header has no "{name}". Restore the file from a copy.')


def read_header(path: Path | None, rows: Iterable[tuple[Any, Any]]) -> Header:
    """The header of these rows of names and JSON texts.

    Args:
        path: what error messages call the file.
        rows: as they are in the file.

    Returns:
        The entries by name, each of the type it must have.

    Raises:
        JournalError: a value is not JSON, of another type, or out of its range; it says which, and what it is.
    """
    return Header(path, {str(name): _read_value(path, str(name), text) for name, text in rows})


def _read_value(path: Path | None, name: str, text: Any) -> Any:
    try:
        value = json.loads(text)
        from_plain(value, TYPES.get(name, Any))
        if name == "num_clients" and not 1 <= value <= MOST_CLIENTS:
            raise ValueError(f"it must be from 1 to {MOST_CLIENTS}")
        if name == "experiment" and not isinstance(value.get("strategy"), dict):
            raise ValueError("it names no strategy")
    except (ValueError, TypeError, RecursionError) as error:
        shown = str(text)
        raise JournalError(
            f'{path} is damaged: "{name}" of its header is {shown[:60]}{"..." if len(shown) > 60 else ""} ({error}). '
            "Restore the file from a copy."
        ) from error
    return value
