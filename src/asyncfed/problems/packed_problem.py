"""What problems with compiled SGD over packed rows share: training, measuring and the penalty."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError, did_you_mean
from asyncfed.core.types import Work
from asyncfed.kernels.rows import check_rows
from asyncfed.problems.client_rows import client_rows
from asyncfed.problems.initial_params import initial_key
from asyncfed.problems.protocol import Array, ClientScores, Initialisation, Jobs, NamedData, PackedData
from asyncfed.problems.sgd_tasks import sgd_tasks
from asyncfed.problems.sparse_data import refuse_sparse

if TYPE_CHECKING:
    from asyncfed.kernels.packed_training import PackedTraining


class PackedProblem(ABC):
    """A `Problem` on rows (n, d) whose objective is the mean over clients of each one's mean loss, and an L2 penalty.

    A problem inherits it, and says what its params are, what a row's loss is and which kernel trains it.

    Args:
        clients: every client's rows: `x` (n, d) float32 or float64, `y` (n,), `offsets`; each client has at least one.
        held_out: rows to measure on and never to train on, by the name of the part ("validation", "test").
    """

    def __init__(self, clients: NamedData, held_out: Mapping[Any, PackedData] | None = None) -> None:
        self.clients = clients
        self.held_out = dict(held_out or {})
        self._x = self._read_rows(clients.x)
        self._y = np.ascontiguousarray(clients.y, dtype=self._x.dtype)
        self._offsets = np.ascontiguousarray(clients.offsets, dtype=np.int64)
        if isinstance(self._x, np.ndarray):
            check_rows(self._x, self._y)
        self.num_examples: NDArray[np.int64] = np.diff(self._offsets)
        if self.num_examples.size == 0 or self.num_examples.min() < 1:
            raise DataError("Some client has no rows, or there is no client; a mean loss needs at least one row each.")

    def _read_rows(self, x: Any) -> Any:
        """The features as the kernel reads them. A problem that also takes sparse rows overrides it."""
        refuse_sparse(x, type(self).__name__)
        return np.ascontiguousarray(x)

    # ---- what a problem says of itself -------------------------------------------------------------------------

    @property
    @abstractmethod
    def num_params(self) -> int:
        """How many numbers the params are."""

    @property
    @abstractmethod
    def _has_classes(self) -> bool:
        """Whether a row's answer is right or wrong, so that there is an accuracy."""

    @property
    @abstractmethod
    def _penalty(self) -> Array:
        """The L2 weight of each param."""

    @cached_property
    @abstractmethod
    def _sgd(self) -> PackedTraining:
        """The compiled loops, loaded when they are first needed."""

    @abstractmethod
    def _sums(self, x: Any, y: Array, offsets: Array, params: Array, threads: int = 1) -> tuple[Array, Array]:
        """Of rows `offsets[i]` up to `offsets[i + 1]`: the sum of their losses and the number of right answers."""

    # ---- data --------------------------------------------------------------------------------------------------

    @property
    def num_clients(self) -> int:
        """C, the number of clients."""
        return len(self.num_examples)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data's, float32 or float64, in which the params are trained."""
        return self._y.dtype

    @property
    def x(self) -> Any:
        """All clients' features, (n, d): an array, or if they were given so a SciPy CSR array."""
        return self._x

    @property
    def y(self) -> Array:
        """All clients' targets, (n,)."""
        return self._y

    @property
    def offsets(self) -> Array:
        """Client c owns rows `offsets[c]` up to `offsets[c + 1]`."""
        return self._offsets

    @property
    def parts(self) -> tuple[str, ...]:
        """`training`, and the names of what is held out."""
        return ("training", *self.held_out)

    @property
    def client_names(self) -> tuple[str, ...]:
        """What the clients are called; empty if they have only numbers."""
        return self.clients.names

    # ---- training ----------------------------------------------------------------------------------------------

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """Zeros, or as PyTorch's Linear layer: weights and bias uniform within ±1/√d, each client its own draw."""
        if how == "zeros":
            return np.zeros(self.num_params, self.dtype)
        if how != "torch":
            raise ConfigError(f'how is "{how}". {did_you_mean(how, ("zeros", "torch"))}')
        bound = self._x.shape[1] ** -0.5
        generator = np.random.Generator(np.random.Philox(key=initial_key(seed, client)))
        return generator.uniform(-bound, bound, self.num_params).astype(self.dtype)

    def local_train(self, params: Array, client: int, work: Work, key: int) -> Array:
        """The client's params after its local work, by a compiled kernel."""
        trained: Array = self.local_train_many(Jobs(np.asarray(params)[None], [client], [work], [key]))[0]
        return trained

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """k independent trainings in one call, to the last bit the same as one by one, whatever `threads`."""
        return self._sgd.train(jobs.starts, sgd_tasks(jobs), threads, jobs.overwrite, jobs.corrections, jobs.steps_done)

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """(I, Σ (y_i − y_0), Σ |y_i − y_0|²) of each training of `local_train_many`, i = 0 … I−1, in float64."""
        return self._sgd.path_moments(jobs.starts, sgd_tasks(jobs), threads, jobs.corrections, jobs.steps_done)

    # ---- measuring ---------------------------------------------------------------------------------------------

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """`objective` and `pooled_loss`, and for classes `accuracy` and `pooled_accuracy`.

        Of held-out rows, `validation_loss` and `test_loss`: the mean over clients of each one's mean, without penalty;
        for classes also `validation_accuracy` and `test_accuracy`.
        """
        sums, correct = self._sums(self._x, self._y, self._offsets, params, threads)
        penalty = self._penalty_value(params)
        rows = len(self._y)
        measured = {
            "objective": float(np.mean(sums / self.num_examples)) + penalty,
            "pooled_loss": float(np.sum(sums)) / rows + penalty,
            **self._more_measurements(params),
        }
        if self._has_classes:
            measured["accuracy"] = float(np.mean(correct / self.num_examples))
            measured["pooled_accuracy"] = float(np.sum(correct)) / rows
        for part in self.held_out:
            scores = self.client_scores(params, part, threads)
            measured[f"{part}_loss"] = float(np.mean(scores.loss[scores.rows > 0]))
            if scores.accuracy is not None:
                measured[f"{part}_accuracy"] = float(np.mean(scores.accuracy[scores.rows > 0]))
        return measured

    def _more_measurements(self, params: Array) -> dict[str, float]:
        """What else a problem measures, between the losses and the accuracies."""
        return {}

    def client_scores(self, params: Array, part: str, threads: int = 1) -> ClientScores:
        """A model (p,), or each client's own (C, p), measured on each client's rows of a part.

        Args:
            params: one model for all clients, or one for each.
            part: "training", or the name of a held-out part.
            threads: threads to compute with, 1 or more; the result does not depend on it.
        """
        data = self.clients if part == "training" else self.held_out[part]
        rows = np.diff(data.offsets)
        if np.ndim(params) == 1:
            sums, correct = self._sums(data.x, data.y, data.offsets, params, threads)
        else:
            bounds = zip(data.offsets[:-1], data.offsets[1:], params, strict=True)
            each = [self._sums(data.x, data.y, np.array([a, b]), own) for a, b, own in bounds]
            sums, correct = (np.concatenate(column) for column in zip(*each, strict=True))
        some = np.where(rows > 0, rows, np.nan)
        return ClientScores(rows, sums / some, correct / some if self._has_classes else None)

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """Each client's mean loss with the penalty, shape (C,)."""
        sums, _ = self._sums(self._x, self._y, self._offsets, params, threads)
        return sums / self.num_examples + self._penalty_value(params)

    def client_loss(self, params: Array, client: int) -> float:
        """One client's mean loss with the penalty."""
        x, y = self._rows_of(client)
        sums, _ = self._sums(x, y, np.array([0, len(y)]), params)
        return float(sums[0]) / len(y) + self._penalty_value(params)

    def client_row_losses(self, params: Array, client: int) -> Array:
        """The loss of each row of one client, without the penalty, shape (n_c,)."""
        x, y = self._rows_of(client)
        losses, _ = self._sums(x, y, np.arange(len(y) + 1), params)  # sums over one row each
        return losses

    def _penalty_value(self, params: Array) -> float:
        weights = self._penalty
        return 0.5 * float(np.sum(weights * np.asarray(params, dtype=np.float64) ** 2)) if weights.any() else 0.0

    def _rows_of(self, client: int) -> tuple[Any, Array]:
        rows = client_rows(self._offsets, client)
        return self._x[rows], self._y[rows]
