"""Where the objective is least: x*, F* and the way there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from asyncfed.core.errors import DataError
from asyncfed.kernels.losses import CLASSIFICATION_LOSSES, HINGE
from asyncfed.problems.newton import newton_minimum
from asyncfed.problems.objective import with_bias_column
from asyncfed.theory.linear_data import LinearData

Array = NDArray[Any]
_LARGEST_PROGRAMME = 4_000_000
"""Cells of x up to which a linear programme is tried: about ten seconds."""


def optimum(data: LinearData, client_weights: Array | None = None) -> Array | None:
    """x*, the minimiser of F, (p,) in double precision; None where `why_no_optimum` gives a reason.

    Smooth losses: by Newton's method, without any (p, p) array beyond 1,500 params. Where least squares has several
    minimisers, the one of least norm. The plain hinge without a penalty: one of its minimisers, by a linear programme.
    `client_weights` (C,), not negative and summing to 1, minimises Σ_c a_c F_c instead.

    Args:
        data: the clients' rows and the loss.
        client_weights: a_c ≥ 0, (C,), summing to 1; None: all equal.

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> optimum(data).round(6)
    array([0.676923, 0.876923])
    """
    if why_no_optimum(data) is not None:
        return None
    if data.loss_code == HINGE:
        return _hinge_minimum(data, client_weights)
    return newton_minimum(data.objective(client_weights))


def why_no_optimum(data: LinearData) -> str | None:
    """Why there is no x* to compute, in a sentence; None if there is one.

    Args:
        data: the clients' rows and the loss.
    """
    if data.is_quadratic:
        return None
    if data.loss_code == HINGE:
        if data.l2 > 0:
            return (
                "The hinge loss with a penalty is a quadratic programme, which is not solved here; use squared_hinge."
            )
        if data.x.shape[0] * data.num_params > _LARGEST_PROGRAMME:
            return (
                f"A linear programme of {data.x.shape[0]} rows and {data.num_params} params is too large to solve here."
            )
        return None
    if data.l2 == 0:
        return (
            f'The loss "{data.loss}" without a penalty need not have a minimiser, nor a single one. Give an l2 above 0.'
        )
    if data.fit_bias and not data.penalize_bias and data.y.min() == data.y.max():
        return "All labels are alike and the bias goes unpenalised: it would grow for ever."
    return None


def require_optimum(data: LinearData) -> Array:
    """x*, or an error that says why there is none.

    Args:
        data: the clients' rows and the loss.
    """
    best = optimum(data)
    if best is None:
        raise DataError(f"This needs the optimum. {why_no_optimum(data)}")
    return best


def optimal_value(data: LinearData, best: Array | None = None) -> float:
    """F* = F(x*); `best` is x* if it is already known.

    Args:
        data: the clients' rows and the loss.
        best: x*, (p,), if it is already known.

    >>> data = LinearData.of_clients([([[0.0]], [1.0]), ([[0.0]], [3.0])])
    >>> optimal_value(data)
    0.5
    """
    return data.objective().value_and_gradient(require_optimum(data) if best is None else best)[0]


def distance_to_optimum(data: LinearData, start: Any, best: Array | None = None) -> float:
    """|x_0 − x*| for a `start` x_0 of p numbers, not squared.

    Args:
        data: the clients' rows and the loss.
        start: x_0, p numbers.
        best: x*, (p,), if it is already known.

    >>> data = LinearData.of_clients([([[0.0]], [1.0]), ([[0.0]], [3.0])])
    >>> distance_to_optimum(data, [0.0, 0.0])
    2.0
    """
    point = data.point(start, "start")
    return float(np.linalg.norm(point - (require_optimum(data) if best is None else best)))


def separable(data: LinearData) -> bool | None:
    """Whether some params get every label right with room to spare, so that F* = 0 for the unpenalised hinges.

    None for losses without labels, and where the linear programme that decides it would be too large.

    Args:
        data: the clients' rows and the loss.

    >>> separable(LinearData.of_clients([([[1.0], [-2.0]], [1, -1])], loss="hinge"))
    True
    """
    if data.loss not in CLASSIFICATION_LOSSES:
        return None
    if data.x.shape[0] * data.num_params > _LARGEST_PROGRAMME:
        return None
    signed = _rows(data).multiply(-data.y[:, None]).tocsr()
    found = linprog(np.zeros(data.num_params), signed, np.full(len(data.y), -1.0), bounds=(None, None), method="highs")
    return bool(found.status == 0)


def _rows(data: LinearData) -> Any:
    """Z, sparse."""
    return with_bias_column(data.x, data.num_params - data.x.shape[1])


def _hinge_minimum(data: LinearData, client_weights: Array | None) -> Array:
    """min Σ_i weight_i t_i over params and t ≥ 0 with y_i z_i·p + t_i ≥ 1."""
    count = len(data.y)
    shares = np.full(data.num_clients, 1.0 / data.num_clients) if client_weights is None else np.asarray(client_weights)
    cost = np.concatenate([np.zeros(data.num_params), np.repeat(shares / data.sizes, data.sizes)])
    signed = _rows(data).multiply(data.y[:, None])
    constraint = sparse.hstack([-signed, -sparse.eye_array(count)], format="csr")
    bounds = [(None, None)] * data.num_params + [(0.0, None)] * count
    found = linprog(cost, constraint, np.full(count, -1.0), bounds=bounds, method="highs")
    if found.status != 0 or found.x is None:
        raise DataError(
            f"The linear programme of the hinge loss was not solved: {found.message} Standardise the features."
        )
    return np.asarray(found.x[: data.num_params])
