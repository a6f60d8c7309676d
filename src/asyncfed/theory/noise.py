"""How noisy a mini-batch's gradient is (Assumption 2), at a point, on a ball and everywhere.

One row's gradient is g_i(x) = f'(z_i·x) z_i + D x, with mean ḡ over the client's n rows and variance
σ_c²(x) = (1/n) Σ |g_i − ḡ|². The mean of a batch of b rows has a share of it (`batch_share`). For least squares and the
squared hinge σ² grows like |x − x*|², so that Assumption 2, one bound for all x, holds on balls only.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.kernels.losses import HINGE, HUBER_HINGE, LOGISTIC, loss_slopes
from asyncfed.theory.blocks import Block, blocks
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.quadratic_noise import largest_on_ball, simple_bound_on_ball
from asyncfed.theory.spectra import MOST_PARAMS_WITH_A_MATRIX

Array = NDArray[Any]
Draw: TypeAlias = Literal["without_replacement", "with_replacement", "reshuffled"]

CONDITIONALLY_UNBIASED: dict[Draw, bool] = {
    "without_replacement": True,
    "with_replacement": True,
    "reshuffled": False,
}
"""Whether a batch's mean gradient, given all batches before it, has the client's gradient as its mean.

Assumption 2 and Lemma 1 need it. A reshuffled epoch, as a PyTorch DataLoader reads it, has not: its last batch is known
from the others.
"""


def batch_share(rows: Any, batch_size: int | None = None, draw: Draw = "without_replacement") -> Array:
    """The variance of a batch's mean gradient as a share of the variance σ² of one row's.

    - `rows` n ≥ 1: rows of the client, a number or an array.
    - `batch_size` b ≥ 1, or None for single rows; a client with fewer rows uses all it has.
    - `draw`: a fresh batch without replacement has (n − b) / (b (n − 1)), one with replacement 1/b. "reshuffled" is any
      one batch of b rows of a reshuffled epoch, by itself the same as without replacement; k of them *summed* at a
      fixed x have `epoch_share`, which is at most k times as much. See `CONDITIONALLY_UNBIASED`.

    >>> batch_share(200, 32).round(7)
    np.float64(0.0263819)
    """
    _check_draw(draw)
    n = np.asarray(rows, dtype=np.float64)
    b = np.minimum(_batch(batch_size), n)
    if draw == "with_replacement":
        return 1.0 / np.full_like(n, _batch(batch_size))
    share: Array = (n - b) / (b * np.maximum(n - 1.0, 1.0))
    return share


def epoch_share(rows: int, batch_size: int, batches: int) -> float:
    """k (n − k b) / (b (n − 1)): the variance, in σ², of the summed means of an epoch's first k batches at fixed x.

    It is 0 after a whole epoch of equal batches (n = k b), and never above k times `batch_share`.

    Args:
        rows: n ≥ 1, rows of the client.
        batch_size: b ≥ 1, rows of a batch.
        batches: k ≥ 0, with k b ≤ n.

    >>> epoch_share(64, 16, 2), epoch_share(64, 16, 4)
    (0.06349206349206349, 0.0)
    """
    if not (batches >= 0 and batch_size >= 1 and batches * batch_size <= rows):
        raise ConfigError(
            f"{batches} batches of {batch_size} rows do not fit into an epoch of {rows}; take fewer or smaller ones."
        )
    return batches * (rows - batches * batch_size) / (batch_size * max(rows - 1, 1))


def gradient_variance(
    data: LinearData, at: Any, batch_size: int | None = None, draw: Draw = "without_replacement"
) -> Array:
    """δ_c²(x), (C,): each client's variance of a batch's mean gradient at the params `at`. Others as in `batch_share`.

    Args:
        data: the clients' rows and the loss.
        at: x, p numbers.
        batch_size: b ≥ 1, rows of a mini-batch; None for single rows. A client with fewer rows uses all it has.
        draw: how a batch is drawn: "without_replacement", "with_replacement" or "reshuffled".

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> gradient_variance(data, [44 / 65, 57 / 65]).round(5)
    array([1.16849, 3.37757])
    """
    point = data.point(at, "at")
    variances = np.empty(data.num_clients)
    for block in blocks(data):
        slopes = loss_slopes(data.loss_code, block.margins(point), block.y, data.hinge_width)
        sizes = np.diff(block.starts)
        means = block.weighted_rows(slopes) / sizes[:, None]
        squares = block.sums(slopes**2 * block.squared_norms()) / sizes
        variances[block.clients] = squares - np.einsum("ij,ij->i", means, means)
    return np.maximum(variances, 0.0) * batch_share(data.sizes, batch_size, draw)


def gradient_variance_on_ball(
    data: LinearData, centre: Any, radius: float, batch_size: int | None = None, draw: Draw = "without_replacement"
) -> Array:
    """(C,): the largest `gradient_variance` at any params within `radius` R ≥ 0 of `centre`.

    Exact for least_squares and mse up to 1,500 params, where σ²(centre + v) = v·A v + 2 b·v + c is maximised by the
    secular equation; beyond, `gradient_variance_ball_bound`. For the losses with labels an upper bound: the mean of
    |z_i|² times the square of the steepest slope that row i can have on the ball.

    Args:
        data: the clients' rows and the loss.
        centre: the ball's centre, p numbers.
        radius: R ≥ 0 of the ball, not squared.
        batch_size: b ≥ 1, rows of a mini-batch; None for single rows. A client with fewer rows uses all it has.
        draw: how a batch is drawn: "without_replacement", "with_replacement" or "reshuffled".
    """
    middle = data.point(centre, "centre")
    _check_radius(radius)
    if not data.is_quadratic:
        worst = _steepest_on_ball(data, middle, float(radius))
    elif data.num_params > MOST_PARAMS_WITH_A_MATRIX:
        return gradient_variance_ball_bound(data, middle, radius, batch_size, draw)
    else:
        worst = largest_on_ball(data, middle, float(radius))
    return worst * batch_share(data.sizes, batch_size, draw)


def gradient_variance_ball_bound(
    data: LinearData, centre: Any, radius: float, batch_size: int | None = None, draw: Draw = "without_replacement"
) -> Array:
    """(C,): at least `gradient_variance_on_ball`, quickly: (σ_c(centre) + R √a)², for least_squares and mse.

    With k the loss's curvature, a = k² max_i |z_i|² λmax(Z_cᵀ Z_c / n_c), which is at least the λmax(A) of
    `gradient_variance_on_ball`.

    Args:
        data: the clients' rows and the loss.
        centre: the ball's centre, p numbers.
        radius: R ≥ 0 of the ball, not squared.
        batch_size: b ≥ 1, rows of a mini-batch; None for single rows. A client with fewer rows uses all it has.
        draw: how a batch is drawn: "without_replacement", "with_replacement" or "reshuffled".
    """
    middle = data.point(centre, "centre")
    _check_radius(radius)
    if not data.is_quadratic:
        return gradient_variance_on_ball(data, middle, radius, batch_size, draw)
    bound = simple_bound_on_ball(data, gradient_variance(data, middle), float(radius))
    return bound * batch_share(data.sizes, batch_size, draw)


def gradient_variance_everywhere(
    data: LinearData, batch_size: int | None = None, draw: Draw = "without_replacement"
) -> Array:
    """(C,): Assumption 2's δ_c², good for every x: mean_i |z_i|² for the logistic, hinge and Huber hinge, else ∞.

    Args:
        data: the clients' rows and the loss.
        batch_size: b ≥ 1, rows of a mini-batch; None for single rows. A client with fewer rows uses all it has.
        draw: how a batch is drawn: "without_replacement", "with_replacement" or "reshuffled".

    >>> data = LinearData.of_clients([([[3.0], [4.0]], [1, -1])], loss="logistic", fit_bias=False)
    >>> gradient_variance_everywhere(data)
    array([12.5])
    """
    if data.loss_code not in (LOGISTIC, HINGE, HUBER_HINGE):
        return np.full(data.num_clients, np.inf)
    bound = np.empty(data.num_clients)
    for block in blocks(data):
        bound[block.clients] = block.sums(block.squared_norms()) / np.diff(block.starts)
    return bound * batch_share(data.sizes, batch_size, draw)


def largest_subgradient(data: LinearData) -> float:
    """G = max_i |z_i|: no subgradient of a row's hinge, Huber hinge or logistic loss is longer, penalty apart.

    Args:
        data: the clients' rows and the loss.

    >>> largest_subgradient(LinearData.of_clients([([[3.0], [0.0]], [1, -1])], loss="hinge", fit_bias=False))
    3.0
    """
    return float(np.sqrt(max(block.squared_norms().max() for block in blocks(data))))


def _steepest_on_ball(data: LinearData, centre: Array, radius: float) -> Array:
    bound = np.empty(data.num_clients)
    for block in blocks(data):
        bound[block.clients] = block.sums(_steepest_squares(data, block, centre, radius)) / np.diff(block.starts)
    return bound


def _steepest_squares(data: LinearData, block: Block, centre: Array, radius: float) -> Array:
    """|z_i|² f'² where f' is steepest: at the margin furthest on the label's wrong side."""
    squared_norms = block.squared_norms()
    worst = block.margins(centre) - block.y * radius * np.sqrt(squared_norms)
    slopes = loss_slopes(data.loss_code, worst, block.y, data.hinge_width)
    return slopes**2 * squared_norms


def _batch(batch_size: int | None) -> int:
    if batch_size is None:
        return 1
    if batch_size != int(batch_size) or batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}; it must be a whole number of at least 1.")
    return int(batch_size)


def _check_draw(draw: str) -> None:
    if draw not in get_args(Draw):
        raise ConfigError(f'draw is "{draw}". {did_you_mean(draw, get_args(Draw))}')


def _check_radius(radius: float) -> None:
    if not (np.isfinite(radius) and radius >= 0):
        raise ConfigError(f"radius is {radius}; it must be zero or a positive number.")
