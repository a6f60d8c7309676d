"""Simulated runs on disk, named by their content, and the processes that add missing ones.

A search asks for runs in an order that depends on nothing but their results. So one that was killed is begun again and
finds on disk what it had simulated, however many processes there were before or are now.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from asyncfed.advice.trial_run import TrialRun, simulate_trial
from asyncfed.core.errors import AsyncFedError, ConfigError, JournalError
from asyncfed.core.record import ValidationError, from_plain, to_json
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.other_machines import OtherMachines
from asyncfed.runs.problem_source import ProblemSource, problem_source
from asyncfed.runs.process_pool import Pool, ProcessPool, SameProcess, check_portable
from asyncfed.store.json_files import read_json
from asyncfed.version import __version__

FORMAT = 1
"""Goes up when what a file holds, or how, is changed."""

TELLING = (
    'Call advise under `if __name__ == "__main__":`, define problems and delays of your own in a module that can be '
    "imported, and check that memory suffices; workers=1 needs none of this. What was simulated is kept."
)

Watcher = Callable[[int, int], None]
"""Called with the number of runs that are done, and of those that are planned at most."""


class TrialCache:
    """The runs in a folder, by experiment.

    Args:
        folder: where they are; it is made when the first is written.
        data: a fingerprint of what an experiment does not say: the problem's rows, the seconds in a trace.
    """

    def __init__(self, folder: Path, data: str) -> None:
        self.folder = folder
        self._data = data
        self._read: dict[Path, TrialRun] = {}

    def path(self, experiment: Experiment) -> Path:
        """The file of this experiment's run, whether it exists or not."""
        text = f"asyncfed {__version__} trial {FORMAT} {self._data} {to_json(experiment)}"
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"

    def read(self, path: Path) -> TrialRun:
        """The run in this file, which is read once."""
        if path not in self._read:
            try:
                self._read[path] = from_plain(read_json(path), TrialRun)
            except ValidationError as error:
                raise JournalError(f"The run {path} cannot be read ({error}). Delete it and run again.") from error
        return self._read[path]

    def write(self, path: Path, done: TrialRun) -> None:
        """Write a run's file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.stem}.{os.getpid()}.unfinished")
        with unfinished.open("w") as file:
            file.write(to_json(done))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)


def simulate_held(experiment: Experiment) -> TrialRun:
    """Simulate an experiment on this process's problem."""
    if not _problem:
        raise ConfigError("This process was not given a problem. Open it with `open_trial_pool`.")
    return simulate_trial(experiment, _problem[0])


class TrialRunner:
    """Answers with the runs of experiments, in the order asked for; simulates those that are not on disk.

    Args:
        cache: the runs on disk.
        pool: the processes, which hold the problem.
        watch: called after each run.
        planned: how many runs there will be at most.
    """

    def __init__(self, cache: TrialCache, pool: Pool, planned: int, watch: Watcher | None = None) -> None:
        self.cache = cache
        self.done = 0
        self._pool = pool
        self._planned = planned
        self._watch = watch

    def run(self, experiments: Sequence[Experiment]) -> list[TrialRun]:
        """The run of each."""
        paths = [self.cache.path(experiment) for experiment in experiments]
        missing = {p: e for p, e in zip(paths, experiments, strict=True) if not p.exists()}
        self._count(len(experiments) - len(missing))
        jobs = {self._pool.submit(simulate_held, e): (path, e) for path, e in missing.items()}
        for job in self._pool.finished(jobs):
            path, experiment = jobs[job]
            try:
                done = job.result()
            except AsyncFedError as error:
                raise type(error)(f"while simulating {to_json(experiment.strategy)}: {error}") from error
            self.cache.write(path, done)
            self._count(1)
        return [self.cache.read(path) for path in paths]

    def reach(self, planned: int) -> None:
        """Say that so many of the planned runs are done or no longer needed."""
        self._count(max(0, planned - self.done))

    def _count(self, number: int) -> None:
        self.done += number
        if self._watch is not None:
            self._watch(self.done, self._planned)


@contextmanager
def open_trial_pool(
    count: int, problem: Problem, cluster: OtherMachines | None = None, described_by: Experiment | None = None
) -> Iterator[Pool]:
    """So many processes that hold the problem, each handed to it once; or for 1 this process itself.

    Processes of a cluster make it themselves, if an experiment describes it.
    """
    if cluster is not None:
        source = problem_source(problem, described_by)
        with cluster.open_pool(_load_problem, (source,), TELLING) as pool:
            yield pool
    elif count == 1:
        before = list(_problem)
        _hold_problem(problem)
        try:
            yield SameProcess()
        finally:
            _problem[:] = before
    else:
        check_portable(problem, "the problem", "Define it at the top of a module, or use workers=1.")
        with ProcessPool(count, _hold_problem, (problem,), TELLING) as pool:
            yield pool


_problem: list[Problem] = []
"""What this process simulates: prepared once, not with every run."""


def _hold_problem(problem: Problem) -> None:
    _problem[:] = [problem]


def _load_problem(source: ProblemSource) -> None:
    _hold_problem(source.load())


def sha256_of_files(paths: Iterable[str]) -> str:
    """A fingerprint of these files' bytes."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()
