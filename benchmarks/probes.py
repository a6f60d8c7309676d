"""Problems that do what another problem does, and note what was asked of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from asyncfed.problems.linear import Linear
from asyncfed.problems.protocol import Jobs


class Call(NamedTuple):
    """One call of `local_train_many`, and its answer."""

    jobs: Jobs
    trained: np.ndarray


class Probe:
    """A problem whose every training is noted in `calls`."""

    def __init__(self, problem: Linear) -> None:
        self.calls: list[Call] = []
        self._problem = problem

    def __getattr__(self, name: str) -> Any:
        if name == "compiled_training":  # what the simulator trains in its own loop would not be noted
            raise AttributeError(name)
        return getattr(self._problem, name)

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> np.ndarray:
        kept = jobs._replace(overwrite=False)
        trained = self._problem.local_train_many(kept, threads)
        self.calls.append(Call(kept, trained.copy()))
        return trained
