"""A unit is one finished run kept on disk: what the figures and verdicts need of it, under a name that is its content.

The name is the SHA-256 of the experiment and of AsyncFed's version, so a unit is never taken for another, and figures
that need the same run share it. A file appears whole or not at all: it is written under another name, then renamed.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from asyncfed.analysis.comparison import Outcome
from asyncfed.core.errors import JournalError
from asyncfed.core.record import to_json, to_plain
from asyncfed.experiment import Experiment
from asyncfed.runs.result import RecordedRun
from asyncfed.version import __version__

FORMAT = 1
"""Goes up when what a unit holds, or how, is changed."""

DIGESTS = ("journal", "params")


class Unit(NamedTuple):
    """One finished run."""

    outcome: Outcome
    params: np.ndarray


def unit_key(experiment: Experiment) -> str:
    """The name of an experiment's unit."""
    return hashlib.sha256(f"asyncfed {__version__} unit {FORMAT} {to_json(experiment)}".encode()).hexdigest()


def cost(experiment: Experiment) -> int:
    """How many client updates a unit simulates, each weighed by its local epochs over 50: what its time goes with."""
    strategy = to_plain(experiment.strategy)
    crowd = strategy.get("concurrency") or strategy.get("cohort_size") or 1
    return max(1, (experiment.budget.rounds or 1) * int(crowd) * experiment.strategy.work.epochs // 50)


def save_unit(run: RecordedRun, path: Path) -> None:
    columns = {
        "verdict": np.array(run.verdict),
        "reason": np.array(run.reason),
        "seed": np.array(run.experiment.seed),
        "participation": run.participation(),
        "params": run.params,
    }
    digests = run.sha256
    columns |= {f"sha256 {name}": np.array(digests[name]) for name in DIGESTS}
    for name, table in (("evaluations", run.evaluations), ("rounds", run.rounds)):
        columns[f"{name} names"] = np.array(list(table))
        columns[name] = np.array([values.astype(np.float64) for values in table.values()])
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}.unfinished")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **columns)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def load_unit(path: Path) -> Unit:
    try:
        with np.load(path, allow_pickle=False) as kept:
            columns = {name: kept[name] for name in kept.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise JournalError(
            f"The finished run {path} cannot be read ({error}). Delete it and reproduce again."
        ) from error
    outcome = Outcome(
        label="",
        seed=int(columns["seed"]),
        verdict=str(columns["verdict"]),
        reason=str(columns["reason"]),
        evaluations=_table("evaluations", columns),
        rounds=_table("rounds", columns),
        participation=columns["participation"],
        sha256={name: str(columns[f"sha256 {name}"]) for name in DIGESTS},
    )
    return Unit(outcome, columns["params"])


def _table(name: str, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return dict(zip(columns[f"{name} names"].tolist(), columns[name], strict=True))


class Units:
    """The units of a folder, by experiment; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Unit] = {}

    def path(self, experiment: Experiment) -> Path:
        return self.folder / f"{unit_key(experiment)}.npz"

    def __contains__(self, experiment: Experiment) -> bool:
        return self.path(experiment).exists()

    def __getitem__(self, experiment: Experiment) -> Unit:
        key = unit_key(experiment)
        if key not in self._read:
            self._read[key] = load_unit(self.folder / f"{key}.npz")
        return self._read[key]
