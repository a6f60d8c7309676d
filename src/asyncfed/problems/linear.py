"""Linear models: least squares, ridge, logistic regression and support vector machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.random import Stream
from asyncfed.core.record import Config
from asyncfed.kernels.losses import CLASSIFICATION_LOSSES, HINGE, loss_code, loss_slopes, loss_values
from asyncfed.problems.linear_shard import LinearShard
from asyncfed.problems.newton import newton_minimum
from asyncfed.problems.objective import Objective, is_sparse
from asyncfed.problems.packed_problem import PackedProblem
from asyncfed.problems.protocol import (
    Array,
    CompiledTraining,
    NamedData,
    PackedData,
    ProblemDescription,
)
from asyncfed.problems.row_losses import RowLosses
from asyncfed.problems.sparse_data import canonical_csr, own_margins
from asyncfed.registry import declare_part

if TYPE_CHECKING:
    from asyncfed.kernels.packed_training import PackedTraining

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


class Linear(PackedProblem):
    """A linear model with params (w_1 … w_d, then the bias if there is one): a `Problem`.

    F(p) = (1/C) Σ_c (1/n_c) Σ_{i in c} f(z_i·w + b, y_i) + l2/2 · |w|²

    Args:
        clients: every client's rows: `x` (n, d) float32 or float64, an array or a SciPy sparse array, `y` (n,),
            `offsets`; each client has at least one. Sparse rows stay sparse: a training step costs what its rows have
            non-zeros, and agrees with that on an array up to rounding.
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
        self._code = loss_code(loss)
        super().__init__(clients, held_out)
        if loss in CLASSIFICATION_LOSSES and not np.all(np.abs(self._y) == 1):
            wrong = self._y[np.abs(self._y) != 1][0]
            raise DataError(
                f'The loss "{loss}" needs labels −1 and +1, but y holds {wrong}. Load the targets as labels, or use '
                '"least_squares".'
            )

    def compiled_training(self) -> CompiledTraining | None:
        """The rows and the model, for a simulator that trains in its own compiled loop; None if rows are sparse."""
        if is_sparse(self._x):
            return None
        model = (self._code, float(self.model.l2), self.model.penalize_bias, self.model.fit_bias, self._width)
        return CompiledTraining(self._x, self._y, self._offsets, model).frozen()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy for another process holds the data once; the kernel's views of them are made anew."""
        model = self.model
        settings = (model.loss, model.l2, model.penalize_bias, model.fit_bias, model.hinge_width)
        return Linear, (self.clients, *settings, self.held_out, model.first_client_batches)

    @property
    def num_params(self) -> int:
        """d, and one more if there is a bias."""
        return int(self._x.shape[1]) + self.model.fit_bias

    @property
    def param_shapes(self) -> tuple[tuple[int, ...], ...]:
        """One vector."""
        return ((self.num_params,),)

    def shard(self, client: int) -> LinearShard:
        """This client's part of the problem, with a copy of its own rows and of no other's."""
        return self.shard_of(*self._rows_of(client))

    def shard_of(self, x: Any, y: Array) -> LinearShard:
        """A client's part of the problem with these rows, which are nobody's."""
        rows = canonical_csr(x, self.dtype) if is_sparse(x) or is_sparse(self._x) else np.asarray(x, self.dtype)
        return LinearShard(self.model, rows, np.asarray(y, self.dtype))

    def on_rows(self, clients: NamedData, held_out: Mapping[str, PackedData] | None = None) -> Linear:
        """The same model and loss for other rows."""
        return self.model.build(clients, held_out)

    def _more_measurements(self, params: Array) -> dict[str, float]:
        """`first_client_loss`, the published scripts' server loss.

        On client 0, the mean over its batches of 32 rows of each batch's mean loss, without the penalty. Here the rows
        are in stored order; `random_measurements` shuffles.
        """
        return {"first_client_loss": self._first_client_loss(params)}

    def random_measurements(self, params: Array, key: int) -> dict[str, float]:
        """`first_client_loss` over batches drawn by `key`, if the model has them reshuffled; otherwise nothing."""
        if self.model.first_client_batches is None:
            return {}
        order = list(range(int(self.num_examples[0])))
        Stream(key).shuffle(order)
        return {"first_client_loss": self._first_client_loss(params, order)}

    def row_losses(self, params: Array, part: str) -> RowLosses:
        """The loss of each row of a part, without penalty, under one model (p,) or each client's own (C, p)."""
        data = self.clients if part == "training" else self.held_out[part]
        models, features = np.asarray(params, dtype=np.float64), data.x.shape[1]
        if models.ndim == 1:
            margins = data.x @ models[:features] + (models[features] if self.model.fit_bias else 0.0)
        else:
            owner = np.repeat(np.arange(len(models)), np.diff(data.offsets))
            if is_sparse(data.x):
                margins = own_margins(data.x, data.offsets, models[:, :features])
            else:
                margins = np.einsum("nd,nd->n", data.x, models[owner, :features])
            margins += models[owner, features] if self.model.fit_bias else 0.0
        return RowLosses(loss_values(self._code, margins, data.y.astype(np.float64), self._width), data.offsets)

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

    @property
    def _has_classes(self) -> bool:
        return self.model.labels

    @cached_property
    def _penalty(self) -> Array:
        """The L2 weight of each param."""
        weights = np.full(self.num_params, float(self.model.l2))
        if self.model.fit_bias and not self.model.penalize_bias:
            weights[-1] = 0.0
        return weights

    # ---- the compiled loops, loaded when they are first needed -------------------------------------------------

    def _read_rows(self, x: Any) -> Any:
        return canonical_csr(x) if is_sparse(x) else super()._read_rows(x)

    @cached_property
    def _sgd(self) -> PackedTraining:
        model = self.model
        settings = (self._code, model.l2, model.penalize_bias, model.fit_bias, self._width)
        if is_sparse(self._x):
            from asyncfed.kernels.sparse_sgd import SparseSgd

            return SparseSgd(self._x, self._y, self._offsets, *settings)
        from asyncfed.kernels.sgd import LocalSgd

        return LocalSgd(self._x, self._y, self._offsets, *settings)

    @cached_property
    def _client_sums(self) -> Callable[..., tuple[Array, Array]]:
        if is_sparse(self._x):
            from asyncfed.kernels.sparse_losses import sparse_client_losses

            return sparse_client_losses
        from asyncfed.kernels.client_losses import client_losses

        return client_losses

    def _sums(self, x: Any, y: Array, offsets: Array, params: Array, threads: int = 1) -> tuple[Array, Array]:
        """Of rows `offsets[i]` up to `offsets[i + 1]`: the sum of their losses and the number of right answers."""
        return self._client_sums(x, y, offsets, params, self._code, threads, self._width)

    def _first_client_loss(self, params: Array, order: Sequence[int] | None = None) -> float:
        x, y = self._rows_of(0)
        if order is not None:
            x, y = x[order], y[order]
        batches = np.append(np.arange(0, len(y), _PUBLISHED_BATCH), len(y))
        sums, _ = self._sums(x, y, batches, params)
        return float(np.mean(sums / np.diff(batches)))
