"""How a problem gets to another machine: by its description, from which it is made there, or else pickled."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from typing import NamedTuple, Protocol

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.process_pool import check_portable

LARGEST_PICKLED = 256 * 2**20
"""Bytes of a problem that is sent as it is, and not made on the other machine."""

_PROBE = Work(steps=1, batch_size=8)


class ProblemSource(Protocol):
    """Something that can be sent to another machine, and there gives the problem."""

    def load(self) -> Problem:
        """The problem; a `ConfigError` if this machine has other data or computes otherwise."""
        ...


class DescribedProblem(NamedTuple):
    """The problem that an experiment describes: its rows are read or generated where it is loaded.

    Args:
        experiment: the description.
        folder: what paths of its files are relative to, where there is such a folder.
        fingerprint: of the problem's data and loss.
        probe: the digest of one training step; see `probe_digest`.
    """

    experiment: Experiment
    folder: str
    fingerprint: str
    probe: str

    def load(self) -> Problem:
        """Make the problem, and refuse it if it is another one, or is trained to other bytes."""
        return _same_arithmetic(self.make(), self.probe)

    def make(self) -> Problem:
        """Make the problem, and refuse it if its data or loss are others."""
        if os.path.isdir(self.folder):
            os.chdir(self.folder)
        problem = self.experiment.problem()
        if problem.fingerprint() != self.fingerprint:
            raise ConfigError(
                f"the experiment's data or loss are others here (fingerprint {problem.fingerprint()[:12]}) than where "
                f"the run was started ({self.fingerprint[:12]}). Put the same files at the same paths."
            )
        return problem


class PickledProblem(NamedTuple):
    """A problem as it is, with all its rows.

    Args:
        packed: pickled.
        probe: the digest of one training step; see `probe_digest`.
    """

    packed: bytes
    probe: str

    def load(self) -> Problem:
        """Unpickle the problem."""
        return _same_arithmetic(pickle.loads(self.packed), self.probe)


def problem_source(
    problem: Problem, described_by: Experiment | None, dumps: Callable[[object], bytes] = pickle.dumps
) -> ProblemSource:
    """What is sent of a problem.

    Args:
        problem: what is learnt.
        described_by: the experiment that describes it; None if it is the caller's own.
        dumps: pickles it, for whoever does not import the script that was started.

    Raises:
        ConfigError: it is the caller's own, and cannot be pickled or is too large.
    """
    if described_by is not None:
        return DescribedProblem(described_by, os.getcwd(), problem.fingerprint(), probe_digest(problem))
    packed = check_portable(problem, "The problem", "Define its functions at the top of a module.", dumps)
    if len(packed) > LARGEST_PICKLED:
        raise ConfigError(
            f"The problem given has {len(packed):,} bytes when pickled; at most {LARGEST_PICKLED:,} are sent to other "
            "machines. Describe its data in the experiment (data, model), so that each machine reads its own copy."
        )
    return PickledProblem(packed, probe_digest(problem))


def probe_digest(problem: Problem) -> str:
    """SHA-256 of the params after one step of client 0: machines that compute otherwise mostly differ in it."""
    return hashlib.sha256(problem.local_train(problem.init(0), 0, _PROBE, 0).tobytes()).hexdigest()


def _same_arithmetic(problem: Problem, probe: str) -> Problem:
    if probe_digest(problem) != probe:
        raise ConfigError(
            "one step of training gives other bytes here than where the run was started, so results would depend on "
            "who trains. Its processor, or a library such as MKL, is another one: leave this machine out."
        )
    return problem
