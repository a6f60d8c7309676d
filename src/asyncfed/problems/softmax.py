"""Multi-class logistic regression: one linear margin for each class, and the softmax of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.record import Config, replace
from asyncfed.kernels.softmax_losses import check_classes, softmax_values
from asyncfed.problems.linear_shard import LinearShard
from asyncfed.problems.newton import newton_minimum
from asyncfed.problems.packed_problem import PackedProblem
from asyncfed.problems.protocol import Array, NamedData, PackedData
from asyncfed.problems.row_losses import RowLosses
from asyncfed.problems.softmax_objective import SoftmaxObjective
from asyncfed.registry import register

if TYPE_CHECKING:
    from asyncfed.kernels.softmax import SoftmaxSgd


@register("problem")
class SoftmaxModel(Config, tag_field="kind", tag="softmax"):
    """Multi-class logistic regression as it is written in TOML: a table `[model]` with `kind = "softmax"`.

    With a margin m_k = z·w_k + b_k for each of K classes, the objective is

        (1/C) Σ_c (1/n_c) Σ_{i in c} [ log Σ_k exp(m_ik) − m_i,y_i ] + l2/2 · Σ_k |w_k|²

    Args:
        num_classes: K, 2 or more; None for as many as the data hold. A client that has only its own rows, as on
            Flower, may not have seen them all: there it has to be said.
        l2: the weight of the penalty, 0 or more.
        penalize_bias: whether the biases take part in the penalty.
        fit_bias: whether there are biases b_k; without, they are 0.

    >>> SoftmaxModel(num_classes=1)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: num_classes is 1; a softmax model needs at least 2 classes.
    """

    num_classes: int | None = None
    l2: float = 0.0
    penalize_bias: bool = True
    fit_bias: bool = True

    loss: ClassVar[str] = "softmax"
    labels: ClassVar[bool] = False
    targets: ClassVar[str] = "classes"
    """What the targets have to be: the numbers 0 … K−1 of classes."""

    def __post_init__(self) -> None:
        if self.num_classes is not None and self.num_classes < 2:
            raise ConfigError(f"num_classes is {self.num_classes}; a softmax model needs at least 2 classes.")
        if not (isfinite(self.l2) and self.l2 >= 0):
            raise ConfigError(f"l2 is {self.l2}; it must be zero or a positive number.")

    def build(self, clients: NamedData, held_out: Mapping[Any, PackedData] | None = None) -> Softmax:
        """The problem of fitting this model to these clients' data.

        Args:
            clients: the rows to train on; their targets are the classes' numbers 0 … K−1.
            held_out: rows to measure on, by the name of the part ("validation", "test").
        """
        return Softmax(clients, self.num_classes, self.l2, self.penalize_bias, self.fit_bias, held_out)


class Softmax(PackedProblem):
    """A softmax model with params (w_1, b_1), …, (w_K, b_K), one class after another: a `Problem`.

    F(p) = (1/C) Σ_c (1/n_c) Σ_{i in c} [ log Σ_k exp(m_ik) − m_i,y_i ] + l2/2 · Σ_k |w_k|²

    With two classes it is logistic regression: w_2 − w_1 is that model's w, and the least penalty has w_1 = −w_2, so
    that l2 here is as 2 · l2 there.

    Args:
        clients: every client's rows: `x` (n, d) float32 or float64, `y` (n,) with classes 0 … K−1, `offsets`.
        num_classes: K, 2 or more; None for one more than the largest class in the data.
        l2: the weight of the penalty, 0 or more.
        penalize_bias: whether the biases take part in the penalty.
        fit_bias: whether there are biases.
        held_out: rows to measure on and never to train on, by the name of the part ("validation", "test").

    >>> import asyncfed as af
    >>> x = [[[0.0], [1.0]], [[2.0], [3.0]]]
    >>> clients = af.data.Clients.from_lists(x, [[0, 0], [1, 2]], labels=False)
    >>> problem = af.problems.Softmax(clients, l2=0.1)
    >>> problem.num_classes, problem.num_params, round(problem.evaluate(problem.optimum())["accuracy"], 2)
    (3, 6, 0.75)
    """

    def __init__(
        self,
        clients: NamedData,
        num_classes: int | None = None,
        l2: float = 0.0,
        penalize_bias: bool = True,
        fit_bias: bool = True,
        held_out: Mapping[Any, PackedData] | None = None,
    ) -> None:
        self.model = SoftmaxModel(num_classes=num_classes, l2=l2, penalize_bias=penalize_bias, fit_bias=fit_bias)
        super().__init__(clients, held_out)
        largest = max(float(data.y.max(initial=0.0)) for data in (clients, *self.held_out.values()))
        if num_classes is None and largest < 1:
            raise DataError("All targets are of one class, 0; a softmax model needs at least 2. Check the target.")
        self.num_classes = int(largest) + 1 if num_classes is None else num_classes
        for data in (clients, *self.held_out.values()):
            check_classes(data.y, self.num_classes)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy for another process holds the data once; the kernel's views of them are made anew."""
        model = self.model
        settings = (self.num_classes, model.l2, model.penalize_bias, model.fit_bias)
        return Softmax, (self.clients, *settings, self.held_out)

    @property
    def num_params(self) -> int:
        """K · d, and K more if there are biases."""
        return self.num_classes * (int(self._x.shape[1]) + self.model.fit_bias)

    @property
    def param_shapes(self) -> tuple[tuple[int, ...], ...]:
        """One matrix, a row for each class."""
        return ((self.num_classes, self.num_params // self.num_classes),)

    def shard(self, client: int) -> LinearShard:
        """This client's part of the problem, with a copy of its own rows and of no other's."""
        return self.shard_of(*self._rows_of(client))

    def shard_of(self, x: Array, y: Array) -> LinearShard:
        """A client's part of the problem with these rows, which are nobody's."""
        model = replace(self.model, num_classes=self.num_classes)
        return LinearShard(model, np.asarray(x, self.dtype), np.asarray(y, self.dtype))

    def on_rows(self, clients: NamedData, held_out: Mapping[str, PackedData] | None = None) -> Softmax:
        """The same model, with as many classes, for other rows."""
        return replace(self.model, num_classes=self.num_classes).build(clients, held_out)

    def row_losses(self, params: Array, part: str) -> RowLosses:
        """The loss of each row of a part, without penalty, under one model (p,) or each client's own (C, p)."""
        data = self.clients if part == "training" else self.held_out[part]
        models, features = np.asarray(params, dtype=np.float64), data.x.shape[1]
        models = models.reshape(*models.shape[:-1], self.num_classes, -1)
        if models.ndim == 2:
            margins = data.x @ models[:, :features].T + (models[:, features] if self.model.fit_bias else 0.0)
        else:
            owner = np.repeat(np.arange(len(models)), np.diff(data.offsets))
            margins = np.einsum("nd,nkd->nk", data.x, models[owner, :, :features])
            margins += models[owner, :, features] if self.model.fit_bias else 0.0
        return RowLosses(softmax_values(margins, data.y.astype(np.int64)), data.offsets)

    def gradient(self, params: Array, client: int) -> Array:
        """The gradient of `client_loss` over all the client's rows, in double precision."""
        x, y = self._rows_of(client)
        return self._objective_of(x, y).value_and_gradient(np.asarray(params, np.float64))[1]

    def objective(self, client_weights: Array | None = None) -> SoftmaxObjective:
        """F, the mean over clients, or with `client_weights` (C,) another weighting of them."""
        return SoftmaxObjective(self._x, self._y, self._offsets, self.num_classes, self._penalty, client_weights)

    def optimum(self) -> Array | None:
        """The minimiser of F in double precision, found once and kept.

        There is one if l2 > 0 and, where biases are left out of the penalty, every class occurs: of the many that
        differ by a number added to all biases, the one whose biases sum to 0. Otherwise the answer is None.
        """
        return None if self._optimum is None else self._optimum.copy()

    def client_optimum(self, client: int) -> Array | None:
        """The minimiser of one client's own loss, penalty included; None where there is none, as in `optimum`."""
        x, y = self._rows_of(client)
        if not self._has_optimum(y):
            return None
        return newton_minimum(self._objective_of(x, y))

    def fingerprint(self) -> str:
        """SHA-256 of the data's own fingerprint and of the model's settings."""
        model = self.model
        text = f"softmax {self.clients.sha256()} {self.num_classes} {model.l2!r} {model.penalize_bias} {model.fit_bias}"
        text += "".join(f" {part} {data.sha256()}" for part, data in self.held_out.items())
        return sha256(text.encode()).hexdigest()

    @cached_property
    def _optimum(self) -> Array | None:
        if not self._has_optimum(self._y):
            return None
        return newton_minimum(self.objective())

    def _objective_of(self, x: Array, y: Array) -> SoftmaxObjective:
        """That of a single client with these rows."""
        return SoftmaxObjective(x, y, np.array([0, len(y)]), self.num_classes, self._penalty)

    def _has_optimum(self, targets: Array) -> bool:
        if self.model.l2 == 0:
            return False
        bias_held = self.model.penalize_bias or not self.model.fit_bias
        return bias_held or len(np.unique(targets)) == self.num_classes

    @property
    def _has_classes(self) -> bool:
        return True

    @cached_property
    def _penalty(self) -> Array:
        """The L2 weight of each param."""
        weights = np.full((self.num_classes, self.num_params // self.num_classes), float(self.model.l2))
        if self.model.fit_bias and not self.model.penalize_bias:
            weights[:, -1] = 0.0
        return weights.ravel()

    # ---- the compiled loops, loaded when they are first needed -------------------------------------------------

    @cached_property
    def _sgd(self) -> SoftmaxSgd:
        from asyncfed.kernels.softmax import SoftmaxSgd

        model = self.model
        settings = (self.num_classes, model.l2, model.penalize_bias, model.fit_bias)
        return SoftmaxSgd(self._x, self._y, self._offsets, *settings)

    def _sums(self, x: Array, y: Array, offsets: Array, params: Array, threads: int = 1) -> tuple[Array, Array]:
        """Of rows `offsets[i]` up to `offsets[i + 1]`: the sum of their losses and the number of right answers."""
        from asyncfed.kernels.softmax import softmax_client_losses

        return softmax_client_losses(x, y, offsets, params, self.num_classes, self.model.fit_bias, threads)
