"""Reading JSON files with an error that says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asyncfed.core.errors import JournalError


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise JournalError(f"{path} cannot be read ({error}). Delete it and run again.") from error
