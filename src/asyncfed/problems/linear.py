"""Linear models: least squares, ridge, logistic regression and support vector machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError, did_you_mean
from asyncfed.core.random import Stream
from asyncfed.core.record import UNSET, Config
from asyncfed.core.types import Work
from asyncfed.kernels.losses import CLASSIFICATION_LOSSES, HINGE, loss_code, loss_slopes, loss_values
from asyncfed.kernels.rows import check_rows
from asyncfed.kernels.tasks import Tasks
from asyncfed.problems.client_rows import client_rows
from asyncfed.problems.initial_params import initial_key
from asyncfed.problems.linear_shard import LinearShard
from asyncfed.problems.newton import newton_minimum
from asyncfed.problems.objective import Objective
from asyncfed.problems.protocol import (
    Array,
    ClientScores,
    Initialisation,
    Jobs,
    NamedData,
    PackedData,
    ProblemDescription,
)
from asyncfed.problems.row_losses import RowLosses
from asyncfed.registry import declare_part

if TYPE_CHECKING:
    from asyncfed.kernels.sgd import LocalSgd

_work_numbers = attrgetter("epochs", "batch_size", "learning_rate", "decay", "proximal")
_QUADRATIC_LOSSES = frozenset({"least_squares", "mse"})
_PUBLISHED_BATCH = 32
_MOST_KEPT = 1024
"""Tasks in a call up to which the columns of one shared work are kept for the next call."""

Batches = Literal["reshuffled"]
"""How the rows of client 0 are put into the batches of `first_client_loss`, if not in stored order."""


class LinearModel(Config):
    """A linear model as it is written in TOML, in the table `[model]`: the default `ProblemDescription`.

    With margin m = z·w + b, the objective is (1/C) Σ_c (1/n_c) Σ_{i in c} f(m_i, y_i) + l2/2 · |w|².

    Args:
        loss: f, one of "least_squares" ½ (m − y)², "mse" (m − y)², "logistic" log(1 + exp(−y m)), "hinge"
            max(0, 1 − y m), "squared_hinge" ½ max(0, 1 − y m)², "huber_hinge" (a hinge with a parabola in place of
            its kink). The last four need labels −1 and +1.
        l2: the weight of the penalty, 0 or more.
        penalize_bias: whether the bias takes part in the penalty.
        fit_bias: whether there is a bias b; without, b = 0.
        hinge_width: the width of the parabola, above 0, 1 if left out; for "huber_hinge" only.
        first_client_batches: how client 0's rows are put into the batches over which `first_client_loss` is a mean: in
            stored order if left out, or "reshuffled" at every measurement, as the published scripts do it. There the
            short last batch counts as a full one and holds other rows each time, so the loss carries a noise of its
            own. It changes this measurement and nothing else of a run.

    >>> LinearModel(loss="hing")
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: loss is "hing", which is no loss of a linear model. Did you mean "hinge"?
    """

    loss: str = "least_squares"
    l2: float = 0.0
    penalize_bias: bool = True
    fit_bias: bool = True
    hinge_width: float | None = None
    first_client_batches: Batches | None = None

    def __post_init__(self) -> None:
        loss_code(self.loss)
        if self.hinge_width is not None:
            self._check_width(self.hinge_width)
        if not (isfinite(self.l2) and self.l2 >= 0):
            raise ConfigError(f"l2 is {self.l2}; it must be zero or a positive number.")

    @property
    def labels(self) -> bool:
        """Whether the targets have to be labels, −1 and +1."""
        return self.loss in CLASSIFICATION_LOSSES

    def build(self, clients: NamedData, held_out: Mapping[Any, PackedData] | None = None) -> Linear:
        """The problem of fitting this model to these clients' data.

        Args:
            clients: the rows to train on, as from `Experiment.clients` or `af.data.Clients`.
            held_out: rows to measure on, by the name of the part ("validation", "test").
        """
        return Linear(
            clients,
            self.loss,
            self.l2,
            self.penalize_bias,
            self.fit_bias,
            self.hinge_width,
            held_out,
            self.first_client_batches,
        )

    def _check_width(self, width: float) -> None:
        if self.loss != "huber_hinge":
            raise ConfigError(
                f'hinge_width belongs to the loss "huber_hinge", but the loss is "{self.loss}". Leave it out.'
            )
        if not (isfinite(width) and width > 0):
            raise ConfigError(f"hinge_width is {width}; it must be a positive number.")


declare_part("problem", ProblemDescription, default=LinearModel)


class Linear:
    """A linear model with params (w_1 … w_d, then the bias if there is one): a `Problem`.

    F(p) = (1/C) Σ_c (1/n_c) Σ_{i in c} f(z_i·w + b, y_i) + l2/2 · |w|²

    Args:
        clients: every client's rows: `x` (n, d) float32 or float64, `y` (n,), `offsets`; each client has at least one.
        loss: f, see `LinearModel`, as all that follow but `held_out`.
        l2: the weight of the penalty, 0 or more.
        penalize_bias: whether the bias takes part in the penalty.
        fit_bias: whether there is a bias.
        hinge_width: the width of the Huber hinge's parabola, above 0.
        held_out: rows to measure on and never to train on, by the name of the part ("validation", "test").
        first_client_batches: "reshuffled", or None for stored order.

    >>> import asyncfed as af
    >>> clients = af.data.Clients.from_lists([[[0.0], [2.0]], [[1.0]]], [[1.0, 3.0], [2.0]])
    >>> af.problems.Linear(clients).optimum().round(6).tolist()  # y = 1 · x + 1
    [1.0, 1.0]
    """

    def __init__(
        self,
        clients: NamedData,
        loss: str = "least_squares",
        l2: float = 0.0,
        penalize_bias: bool = True,
        fit_bias: bool = True,
        hinge_width: float | None = None,
        held_out: Mapping[Any, PackedData] | None = None,
        first_client_batches: Batches | None = None,
    ) -> None:
        self.model = LinearModel(
            loss=loss,
            l2=l2,
            penalize_bias=penalize_bias,
            fit_bias=fit_bias,
            hinge_width=hinge_width,
            first_client_batches=first_client_batches,
        )
        self._width = 1.0 if hinge_width is None else float(hinge_width)
        self.clients = clients
        self.held_out = dict(held_out or {})
        self._code = loss_code(loss)
        self._x = np.ascontiguousarray(clients.x)
        self._y = np.ascontiguousarray(clients.y, dtype=self._x.dtype)
        self._offsets = np.ascontiguousarray(clients.offsets, dtype=np.int64)
        check_rows(self._x, self._y)
        self.num_examples: NDArray[np.int64] = np.diff(self._offsets)
        if self.num_examples.size == 0 or self.num_examples.min() < 1:
            raise DataError("Some client has no rows, or there is no client; a mean loss needs at least one row each.")
        if loss in CLASSIFICATION_LOSSES and not np.all(np.abs(self._y) == 1):
            wrong = self._y[np.abs(self._y) != 1][0]
            raise DataError(
                f'The loss "{loss}" needs labels −1 and +1, but y holds {wrong}. Load the targets as labels, or use '
                '"least_squares".'
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy for another process holds the data once; the kernel's views of them are made anew."""
        model = self.model
        settings = (model.loss, model.l2, model.penalize_bias, model.fit_bias, model.hinge_width)
        return Linear, (self.clients, *settings, self.held_out, model.first_client_batches)

    @property
    def num_clients(self) -> int:
        """C, the number of clients."""
        return len(self.num_examples)

    @property
    def num_params(self) -> int:
        """d, and one more if there is a bias."""
        return int(self._x.shape[1]) + self.model.fit_bias

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data's, float32 or float64, in which the params are trained."""
        return self._x.dtype

    @property
    def x(self) -> Array:
        """All clients' features, (n, d)."""
        return self._x

    @property
    def y(self) -> Array:
        """All clients' targets, (n,)."""
        return self._y

    @property
    def offsets(self) -> Array:
        """Client c owns rows `offsets[c]` up to `offsets[c + 1]`."""
        return self._offsets

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
        """The client's params after its local work, by the kernel of `kernels/sgd.py`."""
        trained: Array = self.local_train_many(Jobs(np.asarray(params)[None], [client], [work], [key]))[0]
        return trained

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """k independent trainings in one call, to the last bit the same as one by one, whatever `threads`."""
        tasks = _tasks(jobs.clients, jobs.works, jobs.keys)
        return self._sgd.train(jobs.starts, tasks, threads, jobs.overwrite, jobs.corrections, jobs.steps_done)

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """(I, Σ (y_i − y_0), Σ |y_i − y_0|²) of each training of `local_train_many`, i = 0 … I−1, in float64."""
        tasks = _tasks(jobs.clients, jobs.works, jobs.keys)
        return self._sgd.path_moments(jobs.starts, tasks, threads, jobs.corrections, jobs.steps_done)

    def shard(self, client: int) -> LinearShard:
        """This client's part of the problem, with a copy of its own rows and of no other's."""
        return LinearShard(self.model, *self._rows_of(client))

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """`objective`, `pooled_loss`, `first_client_loss`, and for labels `accuracy` and `pooled_accuracy`.

        Of held-out rows, `validation_loss` and `test_loss`: the mean over clients of each one's mean, without penalty;
        for labels also `validation_accuracy` and `test_accuracy`.

        `first_client_loss` is the published scripts' server loss: on client 0, the mean over its batches of 32 rows of
        each batch's mean loss, without the penalty. Here the rows are in stored order; `random_measurements` shuffles.
        """
        sums, correct = self._sums(self._x, self._y, self._offsets, params, threads)
        penalty = self._penalty_value(params)
        rows = len(self._y)
        measured = {
            "objective": float(np.mean(sums / self.num_examples)) + penalty,
            "pooled_loss": float(np.sum(sums)) / rows + penalty,
            "first_client_loss": self._first_client_loss(params),
        }
        if self.model.loss in CLASSIFICATION_LOSSES:
            measured["accuracy"] = float(np.mean(correct / self.num_examples))
            measured["pooled_accuracy"] = float(np.sum(correct)) / rows
        for part in self.held_out:
            scores = self.client_scores(params, part, threads)
            measured[f"{part}_loss"] = float(np.mean(scores.loss[scores.rows > 0]))
            if scores.accuracy is not None:
                measured[f"{part}_accuracy"] = float(np.mean(scores.accuracy[scores.rows > 0]))
        return measured

    def random_measurements(self, params: Array, key: int) -> dict[str, float]:
        """`first_client_loss` over batches drawn by `key`, if the model has them reshuffled; otherwise nothing."""
        if self.model.first_client_batches is None:
            return {}
        order = list(range(int(self.num_examples[0])))
        Stream(key).shuffle(order)
        return {"first_client_loss": self._first_client_loss(params, order)}

    @property
    def parts(self) -> tuple[str, ...]:
        """`training`, and the names of what is held out."""
        return ("training", *self.held_out)

    @property
    def client_names(self) -> tuple[str, ...]:
        """What the clients are called; empty if they have only numbers."""
        return self.clients.names

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
        return ClientScores(rows, sums / some, correct / some if self.model.labels else None)

    def row_losses(self, params: Array, part: str) -> RowLosses:
        """The loss of each row of a part, without penalty, under one model (p,) or each client's own (C, p)."""
        data = self.clients if part == "training" else self.held_out[part]
        models, features = np.asarray(params, dtype=np.float64), data.x.shape[1]
        if models.ndim == 1:
            margins = data.x @ models[:features] + (models[features] if self.model.fit_bias else 0.0)
        else:
            owner = np.repeat(np.arange(len(models)), np.diff(data.offsets))
            margins = np.einsum("nd,nd->n", data.x, models[owner, :features])
            margins += models[owner, features] if self.model.fit_bias else 0.0
        return RowLosses(loss_values(self._code, margins, data.y.astype(np.float64), self._width), data.offsets)

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """Each client's mean loss with the penalty, shape (C,)."""
        sums, _ = self._sums(self._x, self._y, self._offsets, params, threads)
        return sums / self.num_examples + self._penalty_value(params)

    def client_loss(self, params: Array, client: int) -> float:
        """One client's mean loss with the penalty."""
        x, y = self._rows_of(client)
        sums, _ = self._sums(x, y, np.array([0, len(y)]), params)
        return float(sums[0]) / len(y) + self._penalty_value(params)

    def gradient(self, params: Array, client: int) -> Array:
        """The gradient of `client_loss` over all the client's rows, in double precision."""
        x, y = self._rows_of(client)
        point = np.asarray(params, dtype=np.float64)
        d = x.shape[1]
        bias = point[d] if self.model.fit_bias else 0.0
        slopes = loss_slopes(self._code, x @ point[:d] + bias, y.astype(np.float64), self._width) / len(y)
        gradient = self._penalty * point
        gradient[:d] += slopes @ x
        if self.model.fit_bias:
            gradient[d] += slopes.sum()
        return gradient

    def optimum(self) -> Array | None:
        """The minimiser of F in double precision, found once and kept.

        Least squares always has one: where the minimum is not unique (fewer rows than features, say, and no penalty),
        the minimiser of least norm. The logistic, squared hinge and Huber hinge losses have a single one when l2 > 0
        and, if the bias is left out of the penalty, both labels occur; otherwise, and for the plain hinge, the answer
        is None.
        """
        return None if self._optimum is None else self._optimum.copy()

    def fingerprint(self) -> str:
        """SHA-256 of the data's own fingerprint and of the model's settings."""
        model = self.model
        text = f"linear {self.clients.sha256()} {model.loss} {model.l2!r} {model.penalize_bias} {model.fit_bias}"
        if model.loss == "huber_hinge":
            text += f" {self._width!r}"
        if model.first_client_batches is not None:
            text += f" {model.first_client_batches}"
        text += "".join(f" {part} {data.sha256()}" for part, data in self.held_out.items())
        return sha256(text.encode()).hexdigest()

    def client_optimum(self, client: int) -> Array | None:
        """The minimiser of one client's own loss, penalty included; None where there is none, as in `optimum`."""
        x, y = self._rows_of(client)
        if not self._has_optimum(y):
            return None
        offsets = np.array([0, len(y)])
        return newton_minimum(Objective(x, y, offsets, self._code, self._penalty, None, self._width))

    @cached_property
    def _optimum(self) -> Array | None:
        if not self._has_optimum(self._y):
            return None
        return newton_minimum(self._objective)

    @property
    def _objective(self) -> Objective:
        return Objective(
            self._x, self._y, self._offsets, self._code, self._penalty, client_weights=None, hinge_width=self._width
        )

    def _has_optimum(self, targets: Array) -> bool:
        if self.model.loss in _QUADRATIC_LOSSES:
            return True
        if self._code == HINGE or self.model.l2 == 0:
            return False
        bias_held = self.model.penalize_bias or not self.model.fit_bias
        return bias_held or bool(targets.min() < targets.max())

    @cached_property
    def _penalty(self) -> Array:
        """The L2 weight of each param."""
        weights = np.full(self.num_params, float(self.model.l2))
        if self.model.fit_bias and not self.model.penalize_bias:
            weights[-1] = 0.0
        return weights

    # ---- the compiled loops, loaded when they are first needed -------------------------------------------------

    @cached_property
    def _sgd(self) -> LocalSgd:
        from asyncfed.kernels.sgd import LocalSgd

        model = self.model
        settings = (self._code, model.l2, model.penalize_bias, model.fit_bias, self._width)
        return LocalSgd(self._x, self._y, self._offsets, *settings)

    @cached_property
    def _client_sums(self) -> Callable[..., tuple[Array, Array]]:
        from asyncfed.kernels.client_losses import client_losses

        return client_losses

    def _sums(self, x: Array, y: Array, offsets: Array, params: Array, threads: int = 1) -> tuple[Array, Array]:
        """Of rows `offsets[i]` up to `offsets[i + 1]`: the sum of their losses and the number of right answers."""
        return self._client_sums(x, y, offsets, params, self._code, threads, self._width)

    def _penalty_value(self, params: Array) -> float:
        if self.model.l2 == 0:
            return 0.0
        return 0.5 * float(np.sum(self._penalty * np.asarray(params, dtype=np.float64) ** 2))

    def _first_client_loss(self, params: Array, order: Sequence[int] | None = None) -> float:
        x, y = self._rows_of(0)
        if order is not None:
            x, y = x[order], y[order]
        batches = np.append(np.arange(0, len(y), _PUBLISHED_BATCH), len(y))
        sums, _ = self._sums(x, y, batches, params)
        return float(np.mean(sums / np.diff(batches)))

    def _rows_of(self, client: int) -> tuple[Array, Array]:
        rows = client_rows(self._offsets, client)
        return self._x[rows], self._y[rows]


def _tasks(clients: Sequence[int], works: Sequence[Work], keys: Sequence[int]) -> Tasks:
    """The tasks as the kernel's arrays."""
    count = len(clients)
    if len(works) != count:
        raise ConfigError(f"There are {count} clients but {len(works)} works; each task needs one of each.")
    if 0 < count <= _MOST_KEPT and works.count(works[0]) == count:
        work = _same_work(works[0], count)
    elif any(each.patience is not UNSET or each.steps is not UNSET for each in works):
        work = np.array([_all_numbers(each) for each in works], dtype=np.float64)
    else:
        work = np.array([_task_numbers(each) for each in works], dtype=np.float64).reshape(count, 5)
    return Tasks(np.array(clients, dtype=np.int64), np.array(keys, dtype=np.uint64), work)


def _task_numbers(work: Work) -> Any:
    if work.momentum:
        raise ConfigError(
            f"work.momentum is {work.momentum}, but linear problems are trained by plain SGD. Leave momentum out, or "
            "write the model as a PyTorch module: af.problems.torch_problem(...)."
        )
    return _work_numbers(work)


@lru_cache(maxsize=64)
def _same_work(work: Work, count: int) -> Array:
    """`count` equal rows. A simulation needs the same few thousands of times a second."""
    plain = work.patience is UNSET and work.steps is UNSET
    numbers = _task_numbers(work) if plain else _all_numbers(work)
    rows = np.empty((count, len(numbers)))
    rows[:] = numbers
    return rows


def _all_numbers(work: Work) -> tuple[float, ...]:
    """The numbers of a task, with its patience and its steps, 0 for none."""
    ends = (0.0 if end is UNSET else float(end) for end in (work.patience, work.steps))
    return (*_task_numbers(work), *ends)
