"""Workers: a problem whose trainings are done by other processes, where threads of one process would not help."""

from __future__ import annotations

import pickle
from itertools import pairwise
from types import TracebackType
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import Array, Jobs, Problem
from asyncfed.runs.process_pool import ProcessPool, check_portable
from asyncfed.runs.shared_rows import Place, SharedRows, attached_rows
from asyncfed.runs.trained_elsewhere import TrainedElsewhere


class Workers(TrainedElsewhere):
    """A `Problem` whose trainings are done by other processes; their results, and so the run, are the same.

        with af.Workers(problem, 2) as pooled:
            af.run(experiment, problem=pooled)

    Afterwards, `pooled` trains in this process, as the problem itself would: `run.clients` may still need it. It pays
    where a training takes more than some milliseconds and spends them in Python. In a script, use it under
    `if __name__ == "__main__":`, for the workers import that script.

    Args:
        problem: what is trained. It must be made of things that can be pickled: a `model_fn` at the top of a module,
            not a lambda.
        count: how many processes, 1 or more.

    Raises:
        ConfigError: `count` is below 1, or the problem cannot be pickled.
    """

    def __init__(self, problem: Problem, count: int) -> None:
        if count < 1:
            raise ConfigError(f"count is {count}; there must be at least 1 worker.")
        packed = check_portable(problem, "The problem", "Define its functions at the top of a module.")
        super().__init__(problem)
        self._count, self._open = count, True
        self._shared = SharedRows()
        self._pool = ProcessPool(
            count,
            _begin,
            (packed,),
            advice='Use Workers under `if __name__ == "__main__":`, define the functions of the problem in a module '
            "that can be imported, and check that memory suffices.",
        )

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open = False
        self._pool.__exit__(kind, error, trace)
        self._shared.close()

    # ---- what workers do -------------------------------------------------------------------------------------

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """Each worker trains some of the jobs, on one thread; `threads` does not matter."""
        if len(jobs.clients) < 2 or not self._open:
            return self._problem.local_train_many(jobs, threads)
        place = self._shared.put(jobs.starts)
        if place is None:
            return np.concatenate(self._on_all_workers("local_train_many", jobs))
        self._on_all_workers("local_train_many", jobs, place)
        return self._shared.get(place)

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """Each worker follows some of the jobs, on one thread; `threads` does not matter."""
        if not self._open:
            return self._problem.local_path_moments(jobs, threads)
        steps, sums, squares = zip(*self._on_all_workers("local_path_moments", jobs), strict=True)
        return np.concatenate(steps), np.concatenate(sums), np.concatenate(squares)

    def _on_all_workers(self, method: str, jobs: Jobs, place: Place | None = None) -> list[Any]:
        """What the problem's method gives for each worker's part of the jobs; with a place, it is put there instead."""
        count, jobs = len(jobs.clients), jobs._replace(origins=None)  # which would be pickled beside their copies
        bounds = list(pairwise(np.linspace(0, count, min(self._count, count) + 1).round().astype(int).tolist()))
        if place is None:
            parts = [self._pool.submit(_call, method, jobs.part(a, b)) for a, b in bounds]
        else:
            parts = [
                self._pool.submit(_call_in_place, method, _part_without_starts(jobs, a, b), place, a) for a, b in bounds
            ]
        answers = [part.result() for part in parts]
        if jobs.steps_done is not None:
            for (a, b), (_, steps_done) in zip(bounds, answers, strict=True):
                jobs.steps_done[a:b] = steps_done
        return [result for result, _ in answers]


_own: Problem | None = None
"""In a worker process, the problem it trains on."""


def _begin(packed: bytes) -> None:
    global _own
    _own = pickle.loads(packed)


def _call(method: str, jobs: Jobs) -> tuple[Any, Array | None]:
    """The method's result, and the steps done: a worker fills in its own copy of them."""
    return getattr(_own, method)(jobs), jobs.steps_done


def _part_without_starts(jobs: Jobs, first: int, last: int) -> Jobs:
    return jobs.part(first, last)._replace(starts=np.empty((0, 0)))


def _call_in_place(method: str, jobs: Jobs, place: Place, first: int) -> tuple[None, Array | None]:
    """The same with starts that the parent shares: the result takes their place."""
    own = attached_rows(place)[first : first + len(jobs.clients)]
    trained = getattr(_own, method)(jobs._replace(starts=own, overwrite=True))
    if trained is not own:
        own[:] = trained
    return None, jobs.steps_done
