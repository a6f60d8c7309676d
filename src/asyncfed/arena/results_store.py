"""What the arena has computed, on disk: a line for every run, and one for every strategy that is done in a cell.

Lines are only ever appended, each by a single write of whichever process computed it. A process that is killed leaves
whole lines behind it, or at most a piece of one at the end, which is ignored. What has a line is not computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from asyncfed.arena.measured_run import RunOutcome
from asyncfed.core.record import ValidationError, from_plain, to_json, to_plain
from asyncfed.experiment import Experiment
from asyncfed.version import __version__

FORMAT = 1
"""Goes up when what a line holds, or how a run is measured, is changed."""

DECIDING_ROOMS = (
    *("core", "kernels", "strategies", "rules", "uplinks", "problems", "data", "delays", "engine", "sim"),
    *("arena/measured_run.py", "arena/problems.py", "arena/cells.py", "store/ledger.py"),
)
"""The code that what a run gives depends on."""

RUNS, ENTRIES = "runs.jsonl", "entries.jsonl"

T = TypeVar("T")


def code_digest() -> str:
    """SHA-256 of AsyncFed's version and of the code that a run depends on: results of other code are not reused."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(f"asyncfed {__version__} arena {FORMAT}".encode())
    for room in DECIDING_ROOMS:
        place = package / room
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            digest.update(file.relative_to(package).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def run_key(code: str, experiment: Experiment) -> str:
    """The name of a run: the digest of its experiment, which says its data, seed and limits, and of the code."""
    return hashlib.sha256(f"{code} {to_json(experiment)}".encode()).hexdigest()[:32]


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Add a line to a file, whole; several processes may do so at once."""
    line = (json.dumps(value, allow_nan=False, separators=(",", ":")) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file that are whole; none if there is no such file."""
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n"):
        try:
            value = json.loads(line) if line else None
        except ValueError:
            continue  # cut off when the process was killed
        if isinstance(value, dict):
            yield value


def end_last_line(path: Path) -> None:
    """Close a line that was cut off, so that the next one begins where a line begins."""
    if path.exists() and path.stat().st_size:
        with path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")


class RunStore:
    """The runs of one strategy in one cell: those that are known, and those that it adds to the file.

    Args:
        path: the file of runs.
        label: what the lines say they belong to.
        code: `code_digest()`.
        known: outcomes by key.
    """

    def __init__(self, path: Path, label: str, code: str, known: dict[str, Any]) -> None:
        self._path = path
        self._label = label
        self._code = code
        self._known = known

    def key(self, experiment: Experiment) -> str:
        """The name of this experiment's run."""
        return run_key(self._code, experiment)

    def read(self, key: str) -> RunOutcome | None:
        """The outcome of a run that is done."""
        return decode(self._known.get(key), RunOutcome)

    def add(self, key: str, outcome: RunOutcome) -> None:
        """Write an outcome down."""
        append_line(self._path, {"label": self._label, "key": key, "outcome": to_plain(outcome)})


def decode(plain: Any, kind: type[T]) -> T | None:
    """What a line holds; None if it holds nothing of this kind, and has to be computed anew."""
    if plain is None:
        return None
    try:
        return from_plain(plain, kind)
    except ValidationError:
        return None
