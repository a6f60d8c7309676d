"""Finished runs kept on disk: what the figures and verdicts need of each, under a name that is its content.

The name is the SHA-256 of the experiment and of AsyncFed's version, so a run is never taken for another, and figures
that need the same run share it. A file appears whole or not at all: it is written under another name, then renamed.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from asyncfed.analysis.comparison_runs import Outcome
from asyncfed.core.errors import JournalError
from asyncfed.core.record import to_json
from asyncfed.experiment import Experiment
from asyncfed.runs.result import RecordedRun
from asyncfed.runs.simulate import simulate
from asyncfed.strategies import Dispatching
from asyncfed.version import __version__

FORMAT = 1
"""Goes up when what a file holds, or how, is changed."""

DIGESTS = ("journal", "params")


class CachedRun(NamedTuple):
    """One finished run: what happened, and the model it ended with."""

    outcome: Outcome
    params: np.ndarray


def run_key(experiment: Experiment) -> str:
    """The name under which an experiment's run is kept."""
    return hashlib.sha256(f"asyncfed {__version__} run {FORMAT} {to_json(experiment)}".encode()).hexdigest()


def cost(experiment: Experiment) -> int:
    """How many client updates are simulated, each weighted by its local epochs over 50: what the time is about
    proportional to."""
    strategy = experiment.strategy
    if not isinstance(strategy, Dispatching):
        return experiment.budget.rounds or 1
    return max(1, (experiment.budget.rounds or 1) * strategy.dispatch.tickets * strategy.work.epochs // 50)


def run_columns(experiment: Experiment) -> dict[str, np.ndarray]:
    """Run an experiment; what the figures need of it, by name. A run that diverges is a result too."""
    run = simulate(experiment, threads=1)
    if not run.finished:
        raise KeyboardInterrupt
    return columns_of(run)


def columns_of(run: RecordedRun) -> dict[str, np.ndarray]:
    """What a finished run's file holds."""
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
    return columns


def write_columns(columns: dict[str, np.ndarray], path: Path) -> None:
    """Write a run's file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}.unfinished")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **columns)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def read_cached_run(path: Path) -> CachedRun:
    """Read a run's file; a `JournalError` says what to do with a damaged one."""
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
    return CachedRun(outcome, columns["params"])


def _table(name: str, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return dict(zip(columns[f"{name} names"].tolist(), columns[name], strict=True))


class RunCache:
    """The finished runs in a folder, by experiment; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, CachedRun] = {}

    def path(self, experiment: Experiment) -> Path:
        """The file of this experiment's run, whether it exists or not."""
        return self.folder / f"{run_key(experiment)}.npz"

    def __contains__(self, experiment: Experiment) -> bool:
        return self.path(experiment).exists()

    def __getitem__(self, experiment: Experiment) -> CachedRun:
        key = run_key(experiment)
        if key not in self._read:
            self._read[key] = read_cached_run(self.folder / f"{key}.npz")
        return self._read[key]
