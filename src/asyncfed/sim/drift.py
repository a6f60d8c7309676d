"""The paper's client drift, measured: how far local iterates wander from the model they are merged into.

    E = sum over merged updates c, local steps i of |y_{c,i} - x|^2      x the server's model just before the merge

With s the model the client started from, this is `sum |y_i - s|^2 + 2 <sum (y_i - s), s - x> + I |s - x|^2`: the two
sums come from a second pass over the training, which is why drift is measured only on request.
"""

from __future__ import annotations

import numpy as np

from asyncfed.core.random import draw_key
from asyncfed.core.types import Merge
from asyncfed.engine.execution import Execution
from asyncfed.engine.training import sent_corrections
from asyncfed.problems.protocol import Jobs, Problem


class DriftMeter:
    """Adds up the drift of every merge since the last evaluation, which then reports it as `client_drift`."""

    def __init__(self, problem: Problem, execution: Execution, train_key: int, threads: int) -> None:
        self._problem = problem
        self._execution = execution
        self._train_key = train_key
        self._threads = threads

    def measure(self, merge: Merge) -> None:
        """Add the drift of this merge, which has not been carried out yet."""
        vectors = self._execution.vectors
        dispatches = [self._execution.dispatches[ticket] for ticket in merge.tickets]
        starts = np.array([vectors.starts[ticket] for ticket in merge.tickets])
        jobs = Jobs(
            starts,
            [d.client for d in dispatches],
            [d.work for d in dispatches],
            [draw_key(self._train_key, d.client, d.ticket) for d in dispatches],
            corrections=sent_corrections(self._execution.rule, dispatches, starts),
        )
        steps, sums, squares = self._problem.local_path_moments(jobs, self._threads)
        gaps = starts.astype(np.float64) - vectors.params
        drift = squares + 2.0 * (sums * gaps).sum(axis=1) + steps * (gaps * gaps).sum(axis=1)
        pending = self._execution.evaluator.pending
        pending["client_drift"] = pending.get("client_drift", 0.0) + float(drift.sum())
