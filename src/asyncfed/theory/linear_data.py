"""A linear model and every client's rows: what the constants are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels.losses import CLASSIFICATION_LOSSES, HINGE, LEAST_SQUARES, MSE, loss_code
from asyncfed.problems.objective import Objective, is_sparse

Array = NDArray[Any]

_LARGEST_CURVATURE = {"least_squares": 1.0, "mse": 2.0, "logistic": 0.25, "hinge": np.inf, "squared_hinge": 1.0}


class _Model(Protocol):
    @property
    def loss(self) -> str: ...
    @property
    def l2(self) -> float: ...
    @property
    def penalize_bias(self) -> bool: ...
    @property
    def fit_bias(self) -> bool: ...
    @property
    def hinge_width(self) -> float | None: ...


class _Problem(Protocol):
    @property
    def x(self) -> Array: ...
    @property
    def y(self) -> Array: ...
    @property
    def offsets(self) -> Array: ...
    @property
    def model(self) -> _Model: ...


@dataclass(frozen=True, eq=False)
class LinearData:
    """A linear model's loss and all clients' rows; a row z_i is x_i with a one behind it for the bias.

    - `x`: the features, (n, d), an array or a SciPy sparse matrix (kept as CSR, never made dense as a whole).
    - `y`: the targets, (n,); −1 and +1 for the losses that need labels.
    - `offsets`: (C + 1,) whole numbers; client c owns rows `offsets[c]` up to `offsets[c + 1]`, at least one.
    - `loss`: least_squares, mse, logistic, hinge, squared_hinge or huber_hinge, as in `kernels/losses.py`.
    - `l2` ≥ 0: the penalty is l2/2 · |w|², on the bias too if `penalize_bias`.
    - `fit_bias`: whether there is a bias, the last of the params.
    - `hinge_width` h > 0: the width of the Huber hinge's parabola; the other losses have none.

    >>> data = LinearData(np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3]))
    >>> data.num_clients, data.num_params
    (2, 2)
    """

    x: Any
    y: Array
    offsets: Array
    loss: str = "least_squares"
    l2: float = 0.0
    penalize_bias: bool = True
    fit_bias: bool = True
    hinge_width: float = 1.0

    def __post_init__(self) -> None:
        x = self.x.tocsr() if is_sparse(self.x) else np.asarray(self.x)
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", np.asarray(self.y, dtype=np.float64))
        object.__setattr__(self, "offsets", np.asarray(self.offsets, dtype=np.int64))
        _check_settings(self)
        _check_rows(self)

    @classmethod
    def of_clients(cls, clients: Sequence[tuple[Any, Any]], **settings: Any) -> LinearData:
        """Hand-made clients, each a pair (x, y); `settings` are loss, l2 and so on.

        >>> LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])], loss="mse").sizes
        array([3, 3])
        """
        if not clients:
            raise DataError("There is no client; give at least one pair (x, y).")
        offsets = np.cumsum([0, *(len(y) for _, y in clients)])
        x = np.concatenate([np.asarray(x, dtype=np.float64) for x, _ in clients])
        return cls(x, np.concatenate([np.asarray(y, dtype=np.float64) for _, y in clients]), offsets, **settings)

    @classmethod
    def of_problem(cls, problem: _Problem) -> LinearData:
        """The data and the loss of AsyncFed's own linear `Problem`; nothing is copied."""
        model = problem.model
        width = 1.0 if model.hinge_width is None else model.hinge_width
        return cls(
            problem.x, problem.y, problem.offsets, model.loss, model.l2, model.penalize_bias, model.fit_bias, width
        )

    @property
    def num_clients(self) -> int:
        """C."""
        return len(self.offsets) - 1

    @property
    def num_params(self) -> int:
        """Features, and one for the bias if there is one."""
        return int(self.x.shape[1]) + bool(self.fit_bias)

    @property
    def sizes(self) -> Array:
        """n_c, rows of each client, shape (C,)."""
        return np.diff(self.offsets)

    @property
    def is_quadratic(self) -> bool:
        """Whether the Hessian is the same everywhere: least_squares and mse."""
        return self.loss_code in (LEAST_SQUARES, MSE)

    @property
    def is_smooth(self) -> bool:
        """Whether the gradient is Lipschitz: all losses but the plain hinge."""
        return self.loss_code != HINGE

    @property
    def loss_code(self) -> int:
        """The number by which kernels know the loss."""
        return loss_code(self.loss)

    @property
    def largest_curvature(self) -> float:
        """k, the largest second derivative of the loss in the margin: 1, for mse 2, for logistic ¼, for Huber 1/h."""
        return 1.0 / self.hinge_width if self.loss == "huber_hinge" else _LARGEST_CURVATURE[self.loss]

    @cached_property
    def penalty(self) -> Array:
        """The L2 weight of each param, shape (p,)."""
        weights = np.full(self.num_params, float(self.l2))
        if self.fit_bias and not self.penalize_bias:
            weights[-1] = 0.0
        return weights

    @property
    def smallest_penalty(self) -> float:
        """The strong convexity the penalty alone gives: l2, or 0 if the bias is not penalised."""
        return float(self.penalty.min())

    def objective(self, client_weights: Array | None = None) -> Objective:
        """F, the mean over clients, or with `client_weights` (C,) another weighting of them."""
        return Objective(
            self.x, self.y, self.offsets, self.loss_code, self.penalty, client_weights, float(self.hinge_width)
        )

    def point(self, params: Any, name: str) -> Array:
        """`params` as p double-precision numbers; the error calls them `name`."""
        point = np.asarray(params, dtype=np.float64)
        if point.shape != (self.num_params,) or not np.isfinite(point).all():
            bias = " and a bias" if self.fit_bias else ""
            raise ConfigError(
                f"{name} has shape {point.shape}, or a number in it is not finite; "
                f"{self.x.shape[1]} features{bias} need {self.num_params} finite numbers."
            )
        return point


def _check_settings(data: LinearData) -> None:
    _ = data.loss_code
    if not (isfinite(data.l2) and data.l2 >= 0):
        raise ConfigError(f"l2 is {data.l2}; it must be zero or a positive number.")
    if not (isfinite(data.hinge_width) and data.hinge_width > 0):
        raise ConfigError(f"hinge_width is {data.hinge_width}; it must be a positive number.")


def _check_rows(data: LinearData) -> None:
    x, y, offsets = data.x, data.y, data.offsets
    if x.ndim != 2 or y.shape != (x.shape[0],):
        raise DataError(
            f"x has shape {x.shape} and y {y.shape}; x must be (rows, features) and y (rows,) with as many."
        )
    if data.num_params < 1:
        raise DataError("x has no column and there is no bias: there is nothing to learn. Give a feature, or a bias.")
    if offsets.ndim != 1 or len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(y):
        raise DataError(
            f"offsets is {offsets}; it must run from 0 to the {len(y)} rows, one more than there are clients."
        )
    if data.sizes.min() < 1:
        empty = int(np.argmin(data.sizes))
        raise DataError(f"Client {empty} has {data.sizes[empty]} rows; a mean loss needs at least one row each.")
    if not (np.isfinite(x.data if is_sparse(x) else x).all() and np.isfinite(y).all()):
        raise DataError("Some number in x or y is not finite. Mend or drop those rows.")
    if data.loss in CLASSIFICATION_LOSSES and not np.all(np.abs(y) == 1):
        wrong = y[np.abs(y) != 1][0]
        raise DataError(
            f'The loss "{data.loss}" needs labels −1 and +1, but y holds {wrong}. Use labels, or "least_squares".'
        )
