"""What the arena has computed, on disk: a line for every run, and one for every strategy that is done in a cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asyncfed.arena.measured_run import RunOutcome
from asyncfed.core.record import to_plain
from asyncfed.experiment import Experiment
from asyncfed.runs.result_lines import append_line, decode
from asyncfed.runs.run_names import code_digest, run_key

FORMAT = 1
"""Goes up when what a line holds, or how a run is measured, is changed."""

DECIDING_FILES = ("arena/measured_run.py", "arena/problems.py", "arena/cells.py")
"""What a run of the arena depends on beside the code of all simulated runs."""

RUNS, ENTRIES = "runs.jsonl", "entries.jsonl"


def arena_digest() -> str:
    """The digest of the code that the arena's runs depend on."""
    return code_digest(f"arena {FORMAT}", DECIDING_FILES)


class RunStore:
    """The runs of one strategy in one cell: those that are known, and those that it adds to the file.

    Args:
        path: the file of runs; None on a machine that does not have it, where none are added.
        label: what the lines say they belong to.
        code: `arena_digest()`.
        known: outcomes by key.
    """

    def __init__(self, path: Path | None, label: str, code: str, known: dict[str, Any]) -> None:
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
        if self._path is not None:
            append_line(self._path, {"label": self._label, "key": key, "outcome": to_plain(outcome)})
