"""A problem whose trainings are done by actors of a cluster, to the bytes that they would have here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from asyncfed.cluster.actor_pool import ActorPool, ClusterLostError
from asyncfed.cluster.sent_versions import SentVersions, SharedModel, received
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Array, Jobs, Problem
from asyncfed.runs.problem_source import ProblemSource
from asyncfed.runs.trained_elsewhere import TrainedElsewhere

CALL_SECONDS = 0.05
"""How long a call should take at least: small clients go together, so that the way there does not count."""

CALLS_PER_ACTOR = 2
"""Into how many calls for each actor the trainings are divided, if they are long enough."""


class SentJobs(NamedTuple):
    """Some jobs of a call, as an actor receives them.

    Args:
        models: the distinct models that they start from.
        which: the model of each job.
        clients: as in `Jobs`.
        works: as in `Jobs`.
        keys: as in `Jobs`.
        corrections: as in `Jobs`.
        counts: whether the steps that each job makes are wanted.
    """

    models: Sequence[Array | SharedModel]
    which: list[int]
    clients: Sequence[int]
    works: Sequence[Work]
    keys: Sequence[int]
    corrections: Array | None
    counts: bool


class ClusterTrainings(TrainedElsewhere):
    """A `Problem` whose trainings actors do; measurements, and what clients remember, stay in this process.

    If no node is left, this process goes on by itself.

    Args:
        problem: what is trained.
        pool: the actors, which hold the problem.
        versions: the models that were sent.
        notify: is told if the cluster is gone.
    """

    def __init__(
        self, problem: Problem, pool: ActorPool, versions: SentVersions, notify: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(problem)
        self._pool, self._versions, self._notify = pool, versions, notify
        self._seconds_of_a_job = CALL_SECONDS
        self._open = True

    def close(self) -> None:
        """From now on, trainings are done in this process."""
        self._open = False
        self._versions.clear()

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """Actors train the jobs, some in a call, each on one thread; a single one is trained here."""
        if self._open and len(jobs.clients) > 1:
            try:
                return np.concatenate(self._on_actors("local_train_many", jobs))
            except ClusterLostError as error:
                self._go_on_here(error)
        return self._problem.local_train_many(jobs._replace(origins=None), threads)

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """Actors follow the jobs, some in a call, each on one thread."""
        if self._open and len(jobs.clients) > 1:
            try:
                steps, sums, squares = zip(*self._on_actors("local_path_moments", jobs), strict=True)
            except ClusterLostError as error:
                self._go_on_here(error)
            else:
                return np.concatenate(steps), np.concatenate(sums), np.concatenate(squares)
        return self._problem.local_path_moments(jobs._replace(origins=None), threads)

    def _on_actors(self, method: str, jobs: Jobs) -> list[Any]:
        """What the method gives for the jobs, in their order."""
        count = len(jobs.clients)
        size = self._jobs_of_a_call(count)
        bounds = [(first, min(first + size, count)) for first in range(0, count, size)]
        calls = [self._pool.submit(train_sent, method, self._sent(jobs.part(*part))) for part in bounds]
        results = []
        for (first, last), call in zip(bounds, calls, strict=True):
            result, steps_done, seconds = call.result()
            results.append(result)
            if jobs.steps_done is not None:
                jobs.steps_done[first:last] = steps_done
            self._seconds_of_a_job += 0.2 * (seconds / (last - first) - self._seconds_of_a_job)
        return results

    def _jobs_of_a_call(self, count: int) -> int:
        """So many that a call takes a while, and so few that every actor has something to do."""
        actors = max(1, sum(self._pool.at_work.values()))
        long_enough = ceil(CALL_SECONDS / max(self._seconds_of_a_job, 1e-6))
        fair = ceil(count / actors)
        return min(fair, max(long_enough, ceil(fair / CALLS_PER_ACTOR)))

    def _sent(self, jobs: Jobs) -> SentJobs:
        models = list(jobs.starts) if jobs.origins is None else jobs.origins
        places: dict[int, int] = {}
        which = [places.setdefault(id(model), len(places)) for model in models]
        distinct = {id(model): model for model in models}.values()
        sent = list(distinct) if jobs.origins is None else [self._versions.send(model) for model in distinct]
        counts = jobs.steps_done is not None
        return SentJobs(sent, which, list(jobs.clients), list(jobs.works), list(jobs.keys), jobs.corrections, counts)

    def _go_on_here(self, error: ClusterLostError) -> None:
        self.close()
        if self._notify is not None:
            self._notify(f"{error} From here on, this process trains.")
        self._pool.leave()


# ---- what an actor does ----------------------------------------------------------------------------------------

_own: Problem | None = None
"""In an actor, the problem it trains on."""


def hold_problem(source: ProblemSource) -> None:
    """In an actor: make or unpack the problem."""
    global _own
    _own = source.load()


def train_sent(method: str, sent: SentJobs) -> tuple[Any, Array | None, float]:
    """In an actor: the method's result, the steps done, and the seconds it took."""
    began = time.perf_counter()
    starts = received(sent.models)[sent.which]
    steps_done = np.zeros(len(sent.clients), np.int64) if sent.counts else None
    jobs = Jobs(starts, sent.clients, sent.works, sent.keys, True, sent.corrections, steps_done)
    return getattr(_own, method)(jobs), steps_done, time.perf_counter() - began
