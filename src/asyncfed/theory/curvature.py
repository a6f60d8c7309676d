"""How curved the losses are: smoothness L (Assumption 1) and strong convexity μ (Assumption 5).

With k the largest second derivative of the loss in the margin (`LinearData.largest_curvature`), Z_c the client's rows
and D the penalty's weights, the Hessian of F_c lies below H̄_c = (k/n_c) Z_cᵀ Z_c + D; of a quadratic loss it is H̄_c.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.losses import LEAST_SQUARES, LOGISTIC, loss_curvatures
from asyncfed.problems.objective import Objective
from asyncfed.theory.blocks import Block, blocks
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.minimum import require_optimum
from asyncfed.theory.spectra import (
    MOST_PARAMS_WITH_A_MATRIX,
    Extremes,
    above_rounding,
    client_extremes,
    largest_eigenvalue,
)

Array = NDArray[Any]


def client_smoothness(data: LinearData) -> Array:
    """L_c, (C,): each F_c has an L_c-Lipschitz gradient (Assumption 1). L_c = λmax(H̄_c); ∞ for the plain hinge.

    Args:
        data: the clients' rows and the loss.

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> client_smoothness(data).round(5)
    array([5.54647, 1.80474])
    """
    return client_curvature(data).largest


def client_strong_convexity(data: LinearData, radius: float | None = None, centre: Any = None) -> Array:
    """μ_c ≥ 0, (C,): each F_c is μ_c-strongly convex (Assumption 5), everywhere or on a ball.

    For a quadratic loss λmin(H̄_c), which is 0 if a client has fewer rows than params and no penalty. For the other
    losses only the penalty bends everywhere: μ_c = l2, or 0 if the bias is not penalised. With `radius` R ≥ 0, on the
    ball of that radius about `centre` (the optimum unless given): λmin((κ_c/n_c) Z_cᵀ Z_c + D), with κ_c the least
    second derivative of the loss that a row of the client can have there; for the logistic loss
    κ_c = min_i s(u_i)(1 − s(u_i)), u_i = |z_i·centre| + R |z_i|, s the logistic function. A client with more than 1,500
    params and more than 2,000 rows gets what the penalty gives, a lower bound.

    Args:
        data: the clients' rows and the loss.
        radius: R ≥ 0 of a ball, not squared; None: everywhere.
        centre: the ball's centre, p numbers; None: the optimum.

    >>> data = LinearData.of_clients([([[1.0], [-1.0]], [1, -1])], loss="logistic", l2=0.1, fit_bias=False)
    >>> client_strong_convexity(data), client_strong_convexity(data, radius=0.5, centre=[0.0]).round(6)
    (array([0.1]), array([0.335004]))
    """
    return client_curvature(data, radius, centre).smallest


def client_curvature(data: LinearData, radius: float | None = None, centre: Any = None) -> Extremes:
    """(μ_c, L_c) as `client_strong_convexity` and `client_smoothness` give them, for the price of one.

    Args:
        data: the clients' rows and the loss.
        radius: R ≥ 0 of a ball, not squared; None: everywhere.
        centre: the ball's centre, p numbers; None: the optimum.
    """
    if not data.is_smooth:
        return Extremes(np.full(data.num_clients, data.smallest_penalty), np.full(data.num_clients, np.inf))
    bounds = client_extremes(data, np.full(data.num_clients, data.largest_curvature))
    if data.is_quadratic:
        return bounds
    if radius is None:
        return Extremes(np.full(data.num_clients, data.smallest_penalty), bounds.largest)
    least = least_curvature_on_ball(data, radius, centre)
    return Extremes(client_extremes(data, least).smallest, bounds.largest)


def smoothness(data: LinearData) -> float:
    """L = max_c L_c of Assumption 1.

    Args:
        data: the clients' rows and the loss.
    """
    return float(client_smoothness(data).max())


def strong_convexity(data: LinearData, radius: float | None = None) -> float:
    """μ = min_c μ_c of Assumption 5.

    Args:
        data: the clients' rows and the loss.
        radius: R ≥ 0 of a ball, not squared; None: everywhere.
    """
    return float(client_strong_convexity(data, radius).min())


def objective_curvature(data: LinearData, radius: float | None = None, centre: Any = None) -> tuple[float, float]:
    """(μ_F, L_F) of F itself, the mean over clients: the extreme eigenvalues of k · mean_c Z_cᵀ Z_c / n_c + D.

    Exact for a quadratic loss. For the others L_F is an upper bound, and μ_F is the penalty's, or with `radius` that of
    the ball, as in `client_strong_convexity`. With more than 1,500 params L_F is found by Lanczos (rounded up by about
    1e-7) and μ_F is what the penalty gives, a lower bound.

    Args:
        data: the clients' rows and the loss.
        radius: R ≥ 0 of a ball, not squared; None: everywhere.
        centre: the ball's centre, p numbers; None: the optimum.

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> [round(value, 5) for value in objective_curvature(data)]
    [0.49125, 3.67541]
    """
    if not data.is_smooth:
        return data.smallest_penalty, np.inf
    if data.num_params > MOST_PARAMS_WITH_A_MATRIX:
        product = data.objective().curvature_product(np.full(len(data.y), data.largest_curvature))
        return data.smallest_penalty, largest_eigenvalue(product, data.num_params)
    moments = mean_second_moments(data)
    values = np.linalg.eigvalsh(data.largest_curvature * moments + np.diag(data.penalty))
    low = data.smallest_penalty
    if data.is_quadratic:
        low = float(above_rounding(values[0], values[-1], data))
    elif radius is not None:
        least = float(least_curvature_on_ball(data, radius, centre).min())
        low = max(low, float(np.linalg.eigvalsh(least * moments + np.diag(data.penalty))[0]))
    return low, float(values[-1])


def mean_second_moments(data: LinearData) -> Array:
    """mean_c Z_cᵀ Z_c / n_c, shape (p, p): for at most 1,500 params.

    Args:
        data: the clients' rows and the loss.
    """
    plain = Objective(data.x, data.y, data.offsets, LEAST_SQUARES, np.zeros(data.num_params))
    return plain.hessian(np.zeros(data.num_params))


def largest_row_smoothness(data: LinearData) -> Array:
    """max_i L_i over each client's rows, (C,), L_i the smoothness of the loss of one row.

    L_i = λmax(k z_i z_iᵀ + D) = k |z_i|² + l2; if the bias goes unpenalised, the larger root of its 2 × 2 matrix.

    Args:
        data: the clients' rows and the loss.
    """
    if not data.is_smooth:
        return np.full(data.num_clients, np.inf)
    largest = np.empty(data.num_clients)
    for block in blocks(data):
        largest[block.clients] = np.maximum.reduceat(row_smoothness(data, block), block.starts[:-1])
    return largest


def row_smoothness(data: LinearData, block: Block) -> Array:
    """L_i of each row of a block.

    Args:
        data: the clients' rows and the loss.
        block: rows of some clients.
    """
    bend = data.largest_curvature * block.squared_norms()
    if not data.fit_bias or data.penalize_bias:
        return bend + data.l2
    # In the plane of x_i and the bias: [[k|x|² + l2, k|x|], [k|x|, k]], with trace bend + l2 and determinant k l2.
    half = 0.5 * (bend + data.l2)
    return half + np.sqrt(np.maximum(half**2 - data.largest_curvature * data.l2, 0.0))


def least_curvature_on_ball(data: LinearData, radius: float, centre: Any = None) -> Array:
    """κ_c, (C,): the least second derivative in the margin that a row of client c has within `radius` of `centre`.

    Args:
        data: the clients' rows and the loss.
        radius: R ≥ 0 of the ball, not squared.
        centre: the ball's centre, p numbers; None: the optimum.
    """
    if not radius >= 0:
        raise ConfigError(f"radius is {radius}; it must be zero or a positive number.")
    middle = require_optimum(data) if centre is None else data.point(centre, "centre")
    least = np.empty(data.num_clients)
    for block in blocks(data):
        margins, reach = block.margins(middle), radius * np.sqrt(block.squared_norms())
        if data.loss_code == LOGISTIC:
            curvatures = loss_curvatures(LOGISTIC, np.abs(margins) + reach, np.ones(len(margins)))
        else:  # piecewise constant in the margin with one interval of curvature, so the two ends decide
            ends = [
                loss_curvatures(data.loss_code, end, block.y, data.hinge_width)
                for end in (margins - reach, margins + reach)
            ]
            curvatures = np.minimum(*ends)
        least[block.clients] = np.minimum.reduceat(curvatures, block.starts[:-1])
    return least
