"""RunState: what an observer may read of a run in progress, simulated or live."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from asyncfed.engine.execution import Execution
from asyncfed.engine.plan import Checkpoint


class RunState:
    """A read-only view of a run: each property gives the value of this moment, not of when the view was made."""

    __slots__ = ("_execution",)

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    @property
    def params(self) -> np.ndarray:
        """The server's model. Never change it: messages on their way hold the same array."""
        return self._execution.vectors.params

    @property
    def kept_params(self) -> np.ndarray:
        """The model that the run is left with if it ends now: the server's, or the best that was measured."""
        best = self._execution.best
        return self.params if best is None else best

    @property
    def version(self) -> int:
        """How many merges there were."""
        return self._execution.version

    @property
    def rounds(self) -> int:
        """How many rounds are complete."""
        return self._execution.server.round

    @property
    def updates(self) -> int:
        """How many updates of clients were merged."""
        return self._execution.server.updates

    @property
    def elapsed(self) -> float:
        """Seconds since the run began, by its own clock."""
        return self._execution.now

    @property
    def last_metrics(self) -> dict[str, float]:
        """The last evaluation, by metric; empty before the first."""
        return self._execution.evaluator.last

    @property
    def verdict(self) -> tuple[str, str]:
        """A word and a sentence: finished, diverged or starved, and why."""
        return self._execution.verdict


class RunInProgress(Protocol):
    """A simulation or a live session, to whoever shows its progress and writes its checkpoints."""

    @property
    def state(self) -> RunState: ...
    @property
    def finished(self) -> bool: ...
    def checkpoint(self) -> Checkpoint: ...
