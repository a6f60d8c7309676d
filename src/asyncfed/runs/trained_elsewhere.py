"""A problem whose trainings are done elsewhere, in other processes or on other machines; all else is done here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.attacks import Coalition, liars_of
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


class TrainedElsewhere(ABC):
    """A `Problem` around another one: trainings are left to whoever inherits it, measurements are the problem's own.

    Args:
        problem: what is trained.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @abstractmethod
    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """What the problem's own gives, to the last bit."""

    @abstractmethod
    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """What the problem's own gives, to the last bit."""

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
