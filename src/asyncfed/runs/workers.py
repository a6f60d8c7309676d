"""Workers: a problem whose trainings are done by other processes, where threads of one process would not help."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from itertools import pairwise
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.attacks import Coalition, liars_of
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.problems.protocol import (
    Array,
    ClientScores,
    Initialisation,
    Jobs,
    MeasuresAtRandom,
    NamedData,
    PackedData,
    Problem,
    RebuildsOnRows,
    as_scoring_problem,
)
from asyncfed.problems.row_losses import client_row_losses
from asyncfed.runs.process_pool import ProcessPool, check_portable
from asyncfed.runs.shared_rows import Place, SharedRows, attached_rows


class Workers:
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
        self._problem, self._count, self._open = problem, count, True
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
        count = len(jobs.clients)
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

    # ---- what the problem itself does ------------------------------------------------------------------------

    @property
    def num_clients(self) -> int:
        """The problem's."""
        return self._problem.num_clients

    @property
    def num_params(self) -> int:
        """The problem's."""
        return self._problem.num_params

    @property
    def dtype(self) -> np.dtype[Any]:
        """The problem's."""
        return self._problem.dtype

    @property
    def num_examples(self) -> NDArray[np.int64]:
        """The problem's."""
        return self._problem.num_examples

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """The problem's, in this process."""
        return self._problem.init(seed, client, how)

    def local_train(self, params: Array, client: int, work: Work, key: int) -> Array:
        """The problem's, in this process."""
        return self._problem.local_train(params, client, work, key)

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """The problem's, in this process."""
        return self._problem.evaluate(params, threads)

    def random_measurements(self, params: Array, key: int) -> dict[str, float]:
        """The problem's, in this process."""
        if isinstance(self._problem, MeasuresAtRandom):
            return self._problem.random_measurements(params, key)
        return {}

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """The problem's, in this process."""
        return self._problem.client_losses(params, threads)

    def client_loss(self, params: Array, client: int) -> float:
        """The problem's, in this process."""
        return self._problem.client_loss(params, client)

    def client_row_losses(self, params: Array, client: int) -> Array:
        """The problem's, in this process."""
        return client_row_losses(self._problem, params, client)

    def gradient(self, params: Array, client: int) -> Array:
        """The problem's, in this process."""
        return self._problem.gradient(params, client)

    def optimum(self) -> Array | None:
        """The problem's, in this process."""
        return self._problem.optimum()

    def fingerprint(self) -> str:
        """The problem's, in this process."""
        return self._problem.fingerprint()

    @property
    def coalition(self) -> Coalition | None:
        """Who lies in the problem; None if nobody does."""
        return liars_of(self._problem)

    @property
    def inner(self) -> Problem:
        """The problem itself, in this process."""
        return self._problem

    # ---- the rows, if the problem gives them -------------------------------------------------------------------

    @property
    def clients(self) -> NamedData:
        """The problem's rows."""
        return self._with_rows().clients

    @property
    def held_out(self) -> Mapping[str, PackedData]:
        """The problem's held-out rows."""
        return self._with_rows().held_out

    @property
    def num_classes(self) -> int | None:
        """The problem's, if it says."""
        classes: int | None = getattr(self._problem, "num_classes", None)
        return classes

    def on_rows(self, clients: NamedData, held_out: Mapping[str, PackedData] | None = None) -> Problem:
        """The problem on other rows, in this process."""
        return self._with_rows().on_rows(clients, held_out)

    def _with_rows(self) -> RebuildsOnRows:
        if not isinstance(self._problem, RebuildsOnRows):
            raise AttributeError(  # so that `gives_rows` says no
                f"{type(self._problem).__name__} does not give its rows. Give it `clients`, `held_out` and `on_rows`, "
                "see asyncfed.problems.protocol.RebuildsOnRows."
            )
        return self._problem

    # ---- measurements on single clients, if the problem has them ---------------------------------------------

    @property
    def parts(self) -> tuple[str, ...]:
        """The problem's, in this process."""
        return as_scoring_problem(self._problem).parts

    @property
    def client_names(self) -> tuple[str, ...]:
        """The problem's, in this process."""
        return as_scoring_problem(self._problem).client_names

    def client_scores(self, params: Array, part: str, threads: int = 1) -> ClientScores:
        """The problem's, in this process."""
        return as_scoring_problem(self._problem).client_scores(params, part, threads)

    def client_optimum(self, client: int) -> Array | None:
        """The problem's, in this process."""
        return as_scoring_problem(self._problem).client_optimum(client)


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
