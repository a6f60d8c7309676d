"""The extreme eigenvalues of every client's (k/n_c) Z_cᵀ Z_c + diag(penalty), by whichever way is cheapest.

- Up to as many params as rows: the (p, p) matrices of clients of one size, stacked.
- Fewer rows than params: with X = U S Vᵀ, the weights turned by V are U S in n_c coordinates, and the other d − n_c
  directions see the penalty only. So an (n_c + 1, n_c + 1) matrix has all there is to know.
- Both numbers large: Lanczos, from products with Z_c and Z_cᵀ alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from asyncfed.core.errors import DataError
from asyncfed.kernels.losses import LEAST_SQUARES
from asyncfed.problems.objective import Objective, is_sparse
from asyncfed.theory.blocks import CELLS_AT_ONCE, dense
from asyncfed.theory.linear_data import LinearData

Array = NDArray[Any]
MOST_PARAMS_WITH_A_MATRIX = 1500
"""More params than this, and nothing of shape (p, p) is made."""
_MOST_ROWS_WITH_A_MATRIX = 2000
_LANCZOS_TOLERANCE = 1e-7


class Extremes(NamedTuple):
    """The smallest and the largest eigenvalue of each client, (C,); by Lanczos, bounds that enclose them."""

    smallest: Array
    largest: Array


def client_extremes(data: LinearData, curvature: Array) -> Extremes:
    """Of (k_c/n_c) Z_cᵀ Z_c + diag(penalty), with k_c = `curvature[c]` ≥ 0, the extreme eigenvalues.

    >>> data = LinearData.of_clients([([[1.0], [-1.0]], [0.0, 0.0])], l2=0.5)
    >>> client_extremes(data, np.array([2.0]))
    Extremes(smallest=array([2.5]), largest=array([2.5]))
    """
    smallest, largest = np.empty(data.num_clients), np.empty(data.num_clients)
    for owners in clients_by_size(data):
        size = int(data.sizes[owners[0]])
        if min(size, data.num_params) > _most_directions(data):
            for client in owners:
                smallest[client], largest[client] = _by_lanczos(data, int(client), float(curvature[client]))
            continue
        for clients, rows in stacks(data, owners):
            values = _eigenvalues(rows, data, curvature[clients])
            smallest[clients], largest[clients] = values[:, 0], values[:, -1]
        if size < data.x.shape[1]:  # the directions no row of the client points into
            smallest[owners] = np.minimum(smallest[owners], data.l2)
            largest[owners] = np.maximum(largest[owners], data.l2)
    return Extremes(above_rounding(smallest, largest, data), largest)


def above_rounding(smallest: Array, largest: Array, data: LinearData) -> Array:
    """The smallest eigenvalues, those a rounding error above what the penalty gives put down to it."""
    floor = data.smallest_penalty
    error = data.num_params * np.finfo(np.float64).eps * largest
    return np.where(smallest - floor <= error, floor, smallest)


def clients_by_size(data: LinearData) -> Iterator[Array]:
    """The clients of each size, smallest size first."""
    order = np.argsort(data.sizes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(data.sizes[order])) + 1)


def stacks(data: LinearData, owners: Array) -> Iterator[tuple[Array, Any]]:
    """Clients of one size, some at a time, and their features (k, n_c, d), dense in double precision.

    A client too large for that comes alone, as it is stored: (n_c, d), maybe sparse.
    """
    size = int(data.sizes[owners[0]])
    at_once = CELLS_AT_ONCE // (size * max(1, data.x.shape[1]))
    if at_once == 0:
        for client in owners:
            yield np.array([client]), data.x[data.offsets[client] : data.offsets[client + 1]]
        return
    for first in range(0, len(owners), at_once):
        clients = owners[first : first + at_once]
        rows = data.offsets[clients][:, None] + np.arange(size)
        picked = dense(data.x[rows.ravel()])
        yield clients, picked.reshape(len(clients), size, -1).astype(np.float64, copy=False)


def second_moments(rows: Any, fit_bias: bool) -> Array:
    """Z_cᵀ Z_c / n_c, (k, p, p), of rows as `stacks` gives them."""
    if rows.ndim == 2:
        size, params = rows.shape[0], rows.shape[1] + bool(fit_bias)
        alone = Objective(rows, np.zeros(size), np.array([0, size]), LEAST_SQUARES, np.zeros(params))
        return alone.hessian(np.zeros(params))[None]
    z = with_ones(rows, fit_bias)
    return np.asarray(np.matmul(z.transpose(0, 2, 1), z) / rows.shape[1])


def with_ones(x: Array, fit_bias: bool) -> Array:
    """Stacked features (k, n, d) with the bias's column of ones."""
    return np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1) if fit_bias else x


def largest_eigenvalue(product: Callable[[Array], Array], size: int) -> float:
    """An upper bound, tight to about seven digits, on the largest eigenvalue of a matrix known by its products alone.

    The Ritz value θ of Lanczos lies below it; θ (1 + 1e-7) + |H v − θ v| does not, short of a start without any share
    in the top eigenvector.

    >>> largest_eigenvalue(lambda v: np.array([1.0, 3.0, 2.0]) * v, 3)  # doctest: +ELLIPSIS
    3.00000...
    """
    if size <= 2:
        return float(np.linalg.eigvalsh(np.array([product(axis) for axis in np.eye(size)]))[-1])
    start = np.random.Generator(np.random.Philox(key=1)).standard_normal(size)
    operator = LinearOperator((size, size), matvec=lambda v: product(np.ravel(v)), dtype=np.float64)
    try:
        values, vectors = eigsh(operator, k=1, which="LA", v0=start, tol=_LANCZOS_TOLERANCE)
    except ArpackNoConvergence as problem:
        raise DataError(
            "Lanczos found no largest eigenvalue of the data's second moments. Standardise the features."
        ) from problem
    residual = float(np.linalg.norm(product(vectors[:, 0]) - values[0] * vectors[:, 0]))
    return float(values[0]) * (1.0 + _LANCZOS_TOLERANCE) + residual


def _most_directions(data: LinearData) -> int:
    """How large a matrix may be: more for rows than for params, as they are few clients' own."""
    return max(
        MOST_PARAMS_WITH_A_MATRIX, _MOST_ROWS_WITH_A_MATRIX if data.num_params > MOST_PARAMS_WITH_A_MATRIX else 0
    )


def _eigenvalues(rows: Any, data: LinearData, curvature: Array) -> Array:
    """Ascending, for each of the clients, whose rows are as `stacks` gives them."""
    size, d = rows.shape[-2:]
    penalty = data.penalty
    if size < d:
        rows, penalty = _transpose(rows), np.append(np.full(size, float(data.l2)), penalty[d:])
    matrices = second_moments(rows, bool(data.fit_bias)) * curvature[:, None, None]
    return np.linalg.eigvalsh(matrices + np.diag(penalty))


def _transpose(rows: Any) -> Array:
    """U S, (k, n, n), of the stacked X = U S Vᵀ (k, n, d) with n < d: the rows in coordinates of their own span."""
    if rows.ndim == 3:
        products = np.matmul(rows, rows.transpose(0, 2, 1))
    else:
        wide = rows.astype(np.float64, copy=False)
        products = dense(wide @ wide.T)[None]
    values, vectors = np.linalg.eigh(products)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


def _by_lanczos(data: LinearData, client: int, curvature: float) -> tuple[float, float]:
    """Below: the penalty alone, which is exact where there are fewer rows than params. Above: Lanczos."""
    rows = slice(int(data.offsets[client]), int(data.offsets[client + 1]))
    x = data.x[rows]
    scale = curvature / x.shape[0]
    d = x.shape[1]
    if not is_sparse(x) and x.dtype != np.float64:
        x = x.astype(np.float64)

    def product(vector: Array) -> Array:
        pull = scale * (x @ vector[:d] + vector[d:].sum())
        image = data.penalty * vector
        image[:d] += x.T @ pull
        image[d:] += pull.sum()
        return image

    return data.smallest_penalty, largest_eigenvalue(product, data.num_params)
