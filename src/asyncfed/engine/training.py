"""Training done late and together.

What a dispatched client computes depends only on the model it starts from, so nothing is trained until the first of the
pending trainings is needed; then all of them are, in one call that uses every thread. The results are those of
training one by one, to the last bit.
"""

from __future__ import annotations

import numpy as np

from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Dispatch
from asyncfed.problems.protocol import Jobs, Problem
from asyncfed.rules import Vectors


class LateTraining:
    """`pending` holds the dispatches still to be trained; `train_all` puts their models into `vectors.trained`.

    Args:
        problem: what is trained.
        vectors: where the models that trainings start from are, and where the trained ones go.
        seed: the run's; each training's draws are keyed by it, the client and the ticket.
        threads: threads to train with, 1 or more.
    """

    def __init__(self, problem: Problem, vectors: Vectors, seed: int, threads: int) -> None:
        self.key = purpose_key(seed, "train")
        self._problem = problem
        self._vectors = vectors
        self._threads = threads
        self.pending: dict[int, Dispatch] = {}

    def train_all(self) -> None:
        """Train what is pending, in one call."""
        start_of, key, trained = self._vectors.starts, self.key, self._vectors.trained
        # Tickets that were lost meanwhile have no start any more.
        pending = [dispatch for ticket, dispatch in self.pending.items() if ticket in start_of]
        starts, clients, works, keys = [], [], [], []
        for dispatch in pending:
            ticket, client = dispatch.ticket, dispatch.client
            starts.append(start_of[ticket])
            clients.append(client)
            works.append(dispatch.work)
            keys.append(draw_key(key, client, ticket))
        copies = np.concatenate(starts).reshape(len(starts), -1)
        models = self._problem.local_train_many(Jobs(copies, clients, works, keys, overwrite=True), self._threads)
        for dispatch, model in zip(pending, models, strict=True):
            trained[dispatch.ticket] = model
        self.pending.clear()
