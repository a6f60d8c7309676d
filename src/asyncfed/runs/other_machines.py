"""What runs and studies need of other machines; `asyncfed.cluster` has it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.process_pool import Pool


class OtherMachines(Protocol):
    """Machines that train the clients of a simulation, or do whole runs of a study."""

    def train_for(self, experiment: Experiment, problem: Problem, described: bool) -> AbstractContextManager[Problem]:
        """The same problem, trained there; `described` says whether it is the one that the experiment describes."""
        ...

    def open_pool(
        self, begin: Callable[..., None] | None = None, arguments: tuple[Any, ...] = (), advice: str = ""
    ) -> AbstractContextManager[Pool]:
        """Processes there, each of which calls `begin(*arguments)` first; `advice` ends the message of an error."""
        ...


def trained_there(
    machines: OtherMachines | None, experiment: Experiment, problem: Problem, described: bool
) -> AbstractContextManager[Problem]:
    """The problem, trained by other machines if there are any."""
    return nullcontext(problem) if machines is None else machines.train_for(experiment, problem, described)
