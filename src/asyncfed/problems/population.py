"""Problems on populations: clients whose rows are made when they train, and of whom nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.random import purpose_key
from asyncfed.core.types import Work
from asyncfed.kernels.tasks import Tasks
from asyncfed.problems.client_sizes import require_listed
from asyncfed.problems.linear import Linear, LinearModel
from asyncfed.problems.linear_shard import LinearShard
from asyncfed.problems.protocol import Array, Initialisation, Jobs, ProblemDescription
from asyncfed.problems.sgd_tasks import sgd_tasks
from asyncfed.problems.virtual_clients import VirtualClients

if TYPE_CHECKING:
    from asyncfed.kernels.population_rows import RowLaw
    from asyncfed.kernels.sgd import LocalSgd

CELLS_AT_ONCE = 1 << 22
"""Numbers of rows that are made at once, 32 MB: jobs with more are trained in several calls."""

_SQUARES = {"least_squares": 0.5, "mse": 1.0}
"""Losses that are a multiple of the square of margin minus target."""


@dataclass(frozen=True, eq=False)
class MadeRows:
    """Rows of some clients, one after another, as `PackedData`."""

    x: Array
    y: Array
    offsets: Array
    names: tuple[str, ...] = ()

    def sha256(self) -> str:
        """The fingerprint of the rows."""
        return sha256(self.x.tobytes() + self.y.tobytes() + self.offsets.tobytes()).hexdigest()


class Population:
    """A linear model and clients that hold no rows: a `Problem` for any number of clients.

    Training makes the rows of the clients that train and forgets them. Results are to the last bit those of `Linear` on
    the same rows in arrays. Models are measured on `measured_clients` of the clients, drawn by the seed, always the
    same: `pooled_loss` (and for classes the accuracies) on the rows these train on, `test_loss` on other rows of them.

    Of no more clients than that, `objective` and `optimum` are as everywhere. Of more, where rows are drawn from a
    known law and the loss is a square, they are exact too: the objective is the expected loss of a new client, with h
    the heterogeneity and k = 1/2 for "least_squares", 1 for "mse",

        F(w, b) = k [(1 + shift²) (|w − w*|² + d h²) + (b − b*)² + noise²] + l2/2 |·|²

    Otherwise the objective is the mean over the measured clients, and no optimum is known.

    Args:
        model: the linear model.
        clients: the clients.

    >>> import asyncfed as af
    >>> people = af.problems.FunctionClients(lambda c: ([[1.0], [2.0]], [1.0, 2.0]), 10**8, 1, num_rows=2, name="line")
    >>> problem = af.problems.Population(af.problems.LinearModel(fit_bias=False), people)
    >>> problem.num_clients, problem.evaluate(np.ones(1))["objective"]
    (100000000, 0.0)
    """

    def __init__(self, model: LinearModel, clients: VirtualClients) -> None:
        self.model, self.people = model, clients
        if model.labels and not clients.labels:
            raise DataError(
                f'The loss "{model.loss}" needs labels −1 and +1, and the targets of these clients are not.'
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return Population, (self.model, self.people)

    # ---- what it is --------------------------------------------------------------------------------------------

    @property
    def num_clients(self) -> int:
        """C, the number of clients."""
        return self.people.num_clients

    @property
    def num_params(self) -> int:
        """d, and one more if there is a bias."""
        return self.people.num_features + self.model.fit_bias

    @property
    def param_shapes(self) -> tuple[tuple[int, ...], ...]:
        """One vector."""
        return ((self.num_params,),)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the params are trained in."""
        return self.people.dtype

    @property
    def client_sizes(self) -> Sequence[int]:
        """The rows of each client, which are not listed."""
        return self.people.sizes

    @property
    def num_examples(self) -> NDArray[np.int64]:
        """The rows of each client in an array, where there are not too many for one."""
        require_listed(self.num_clients, "The number of rows of each client")
        return np.array(list(self.people.sizes), np.int64)

    def fingerprint(self) -> str:
        """SHA-256 of what the rows follow from and of the model's settings."""
        model = self.model
        text = f"population {self.people.sha256()} {model.loss} {model.l2!r} {model.penalize_bias} {model.fit_bias}"
        return sha256(f"{text} {model.hinge_width!r} {self.people.measured_clients}".encode()).hexdigest()

    # ---- training ----------------------------------------------------------------------------------------------

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """Zeros, or as PyTorch's Linear layer, each client its own draw."""
        return self._measured.init(seed, client, how)

    def local_train(self, params: Array, client: int, work: Work, key: int) -> Array:
        """The client's params after its local work."""
        trained: Array = self.local_train_many(Jobs(np.asarray(params)[None], [client], [work], [key]))[0]
        return trained

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """k independent trainings, to the last bit the same as one by one, whatever `threads`."""
        trained = np.empty((len(jobs.clients), self.num_params), self.dtype)
        for first, last in self._pieces(jobs.clients):
            some = jobs.part(first, last)
            sgd, tasks = self._sgd_of(some, threads)
            done = None if jobs.steps_done is None else np.zeros(last - first, np.int64)
            trained[first:last] = sgd.train(some.starts, tasks, threads, some.overwrite, some.corrections, done)
            if jobs.steps_done is not None:
                jobs.steps_done[first:last] = done
        return trained

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """(I, Σ (y_i − y_0), Σ |y_i − y_0|²) of each training of `local_train_many`, i = 0 … I−1, in float64."""
        parts = []
        for first, last in self._pieces(jobs.clients):
            some = jobs.part(first, last)
            sgd, tasks = self._sgd_of(some, threads)
            parts.append(sgd.path_moments(some.starts, tasks, threads, some.corrections, some.steps_done))
        steps, sums, squares = (np.concatenate(column) for column in zip(*parts, strict=True))
        return steps, sums, squares

    def _pieces(self, clients: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Jobs `first` up to `last` whose rows are made at once."""
        for client in (min(clients, default=0), max(clients, default=0)):
            self._require_client(client)
        rows = self.people.count_rows(clients)
        most = max(1, CELLS_AT_ONCE // self.people.num_features)
        first = 0
        while first < len(clients):
            reached = np.searchsorted(np.cumsum(rows[first:]), most, side="right")
            last = first + max(1, int(reached))
            yield first, last
            first = last

    def _sgd_of(self, jobs: Jobs, threads: int) -> tuple[LocalSgd, Tasks]:
        """The compiled loops on the rows of the jobs' clients, and the jobs as tasks on them."""
        from asyncfed.kernels.losses import loss_code
        from asyncfed.kernels.sgd import LocalSgd

        model, tasks = self.model, sgd_tasks(jobs)
        width = 1.0 if model.hinge_width is None else float(model.hinge_width)
        rows = self.people.pack(jobs.clients, threads)
        sgd = LocalSgd(*rows, loss_code(model.loss), model.l2, model.penalize_bias, model.fit_bias, width)
        return sgd, Tasks(np.arange(len(jobs.clients)), tasks.keys, tasks.work)

    def _require_client(self, client: int) -> None:
        if not 0 <= client < self.num_clients:
            raise ConfigError(f"There is no client {client}; clients are 0 … {self.num_clients - 1}.")

    # ---- single clients ----------------------------------------------------------------------------------------

    def on_client(self, client: int) -> Linear:
        """The same model on the rows of one client, who is its client 0."""
        self._require_client(client)
        return self.model.build(MadeRows(*self.people.pack([client])))

    def shard(self, client: int) -> LinearShard:
        """This client's part of the problem."""
        return self.on_client(client).shard(0)

    def shard_of(self, x: Any, y: Array) -> LinearShard:
        """A client's part of the problem with these rows, which are nobody's."""
        return self._measured.shard_of(x, y)

    def client_loss(self, params: Array, client: int) -> float:
        """One client's mean loss with the penalty."""
        return self.on_client(client).client_loss(params, 0)

    def client_row_losses(self, params: Array, client: int) -> Array:
        """The loss of each row of one client, without the penalty."""
        return self.on_client(client).client_row_losses(params, 0)

    def gradient(self, params: Array, client: int) -> Array:
        """The gradient of `client_loss` over all the client's rows."""
        return self.on_client(client).gradient(params, 0)

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """Each client's mean loss with the penalty, where there are not too many clients."""
        require_listed(self.num_clients, "The loss of each client")
        clients = range(self.num_clients)
        pieces = [self.people.pack(clients[first:last], threads) for first, last in self._pieces(clients)]
        return np.concatenate([self.model.build(MadeRows(*rows)).client_losses(params, threads) for rows in pieces])

    # ---- measuring ---------------------------------------------------------------------------------------------

    @cached_property
    def measured(self) -> tuple[int, ...]:
        """The clients on which models are measured, in order of number."""
        count, most = self.num_clients, self.people.measured_clients
        if count <= most:
            return tuple(range(count))
        generator = np.random.Generator(np.random.Philox(key=purpose_key(self.people.seed, "population measured")))
        return tuple(np.sort(generator.choice(count, most, replace=False)).tolist())

    @cached_property
    def _measured(self) -> Linear:
        """The same model on the rows of the measured clients, with other rows of theirs to test on."""
        has_test = getattr(self.people, "held_out_rows", True) is not None
        test = {"test": MadeRows(*self.people.pack(self.measured, held_out=True))} if has_test else {}
        return self.model.build(MadeRows(*self.people.pack(self.measured)), test)

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """`objective` and `pooled_loss`, for classes the accuracies, and `test_loss` on rows nobody trains on."""
        found = self._measured.evaluate(params, threads)
        del found["first_client_loss"]  # of a client that is the first by chance
        if not self._measures_all and (law := self._quadratic_law) is not None:
            found["objective"] = self._expected_loss(params, law)
        return found

    @property
    def _measures_all(self) -> bool:
        return self.num_clients <= self.people.measured_clients

    @property
    def _quadratic_law(self) -> RowLaw | None:
        """What rows are drawn from, if the expected loss has a formula."""
        law = self.people.law
        return None if law is None or law.labels or self.model.loss not in _SQUARES else law

    def _expected_loss(self, params: Array, law: RowLaw) -> float:
        """The loss of a new client by the law, with the penalty."""
        model = self.model
        point, d = np.asarray(params, np.float64), self.people.num_features
        bias = float(point[d]) if model.fit_bias else 0.0
        gap = float(np.sum((point[:d] - law.weights) ** 2)) + d * law.heterogeneity**2
        square = (1.0 + law.shift**2) * gap + (bias - law.bias) ** 2 + law.noise**2
        return _SQUARES[model.loss] * square + 0.5 * float(np.sum(self._penalty * point**2))

    def optimum(self) -> Array | None:
        """The params that minimise the objective; None where there is no formula."""
        law, model = self._quadratic_law, self.model
        if self._measures_all:
            return self._measured.optimum()
        if law is None:
            return None
        best = np.append(law.weights, law.bias) if model.fit_bias else law.weights.copy()
        curvature = np.full(self.num_params, 2.0 * _SQUARES[model.loss] * (1.0 + law.shift**2))
        if model.fit_bias:
            curvature[-1] = 2.0 * _SQUARES[model.loss]
        shrunk: Array = best * curvature / (curvature + self._penalty)
        return shrunk

    @cached_property
    def _penalty(self) -> Array:
        weights = np.full(self.num_params, float(self.model.l2))
        if self.model.fit_bias and not self.model.penalize_bias:
            weights[-1] = 0.0
        return weights


def build_population(model: ProblemDescription, clients: VirtualClients) -> Population:
    """The problem of fitting this model to these clients' data, which are made when they are needed."""
    if not isinstance(model, LinearModel):
        raise ConfigError(
            f"A population is learnt by a linear model, and this is a {type(model).__name__}. Leave model.kind out, or "
            "use data whose rows are held in arrays."
        )
    if model.first_client_batches is not None:
        raise ConfigError("model.first_client_batches is about client 0, which a population does not measure alone.")
    return Population(model, clients)
