"""Problems that do what another problem does, and note what was asked of it."""

from __future__ import annotations

from time import process_time
from typing import Any, NamedTuple

import numpy as np

from asyncfed.problems.linear import Linear
from asyncfed.problems.protocol import Jobs


class Call(NamedTuple):
    """One call of `local_train_many`, and its answer."""

    jobs: Jobs
    trained: np.ndarray


class Probe:
    """A problem whose every training is noted in `calls`, or only timed in `seconds` (of processor time)."""

    def __init__(self, problem: Linear, keep_calls: bool) -> None:
        self.calls: list[Call] = []
        self.seconds = 0.0
        self._problem = problem
        self._keep_calls = keep_calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> np.ndarray:
        kept = jobs._replace(overwrite=False)
        began = process_time()
        trained = self._problem.local_train_many(kept, threads)
        self.seconds += process_time() - began
        if self._keep_calls:
            self.calls.append(Call(kept, trained.copy()))
        return trained
