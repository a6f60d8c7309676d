"""The largest gradient noise of least squares on a ball.

With row Hessians H_i = k z_i z_iᵀ and their mean H, and gradients g_i at the centre with mean ḡ, the noise is

    σ²(centre + v) = v·A v + 2 b·v + c,  A = mean (H_i − H)²,  b = mean (H_i − H)(g_i − ḡ),  c = σ²(centre).

A is positive semidefinite, so the maximum over |v| ≤ R lies on the sphere, and equals (strong duality of the
trust-region problem) the least value over θ ≥ 0 of

    c + (a + θ) R² + Σ_j b_j² / (a + θ − a_j),  a = max_j a_j, in the eigenvectors of A.

Its derivative vanishes where Σ_j b_j² / (a + θ − a_j)² = R²: the secular equation. If b has no share in the top
eigenvectors there may be no such θ; then θ = 0, and their terms are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.losses import loss_slopes
from asyncfed.theory.blocks import CELLS_AT_ONCE, blocks, dense
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.spectra import client_extremes, clients_by_size, stacks, with_ones

Array = NDArray[Any]
_BISECTIONS = 120


def largest_on_ball(data: LinearData, centre: Array, radius: float) -> Array:
    """max σ_c²(x) over |x − centre| ≤ radius, (C,), for at most 1,500 params."""
    largest = np.empty(data.num_clients)
    for owners in clients_by_size(data):
        for clients, rows in stacks(data, owners):
            y = data.y[data.offsets[clients][:, None] + np.arange(rows.shape[-2])]
            sums = [np.sum(parts, axis=0) for parts in zip(*_sums_in_pieces(data, rows, y, centre), strict=True)]
            largest[clients] = _largest_of([each / y.shape[1] for each in sums], radius)
    return largest


def simple_bound_on_ball(data: LinearData, variance: Array, radius: float) -> Array:
    """(σ_c + R √a)², (C,), with `variance` σ_c² that at the centre and a = k² max_i |z_i|² λmax(Z_cᵀ Z_c / n_c)."""
    k = data.largest_curvature
    unpenalised = LinearData(data.x, data.y, data.offsets, data.loss, fit_bias=data.fit_bias)
    moments = client_extremes(unpenalised, np.ones(data.num_clients)).largest
    longest = np.empty(data.num_clients)
    for block in blocks(data):
        longest[block.clients] = np.maximum.reduceat(block.squared_norms(), block.starts[:-1])
    return (np.sqrt(variance) + radius * k * np.sqrt(longest * moments)) ** 2


def maximum_on_sphere(matrix: Array, linear: Array, radius: float) -> Array:
    """max over |v| ≤ radius of v·A v + 2 b·v, for stacked A (…, p, p) positive semidefinite and b (…, p).

    >>> maximum_on_sphere(np.diag([1.0, 4.0]), np.array([3.0, 0.0]), 2.0).round(9)  # b has no share in the top one
    np.float64(19.0)
    """
    values, vectors = np.linalg.eigh(matrix)
    squares = np.einsum("...ji,...j->...i", vectors, linear) ** 2
    squares[squares <= np.finfo(np.float64).eps ** 2 * squares.sum(axis=-1, keepdims=True)] = 0.0
    if radius == 0:
        return np.zeros(squares.shape[:-1])
    gaps = values[..., -1:] - values
    low = np.zeros(squares.shape[:-1])
    high = np.sqrt(squares.sum(axis=-1)) / radius
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        too_long = _shares(squares, gaps + middle[..., None], power=2).sum(axis=-1) > radius**2
        low, high = np.where(too_long, middle, low), np.where(too_long, high, middle)
    rest = _shares(squares, gaps + high[..., None], power=1).sum(axis=-1)
    return np.asarray((values[..., -1] + high) * radius**2 + rest)[()]


def _shares(squares: Array, distances: Array, power: int) -> Array:
    """b_j² / distance^power, with 0 / 0 = 0."""
    shares: Array = np.divide(squares, distances**power, out=np.zeros_like(squares), where=squares > 0)
    return shares


def _sums_in_pieces(data: LinearData, rows: Any, y: Array, centre: Array) -> Iterator[tuple[Array, ...]]:
    """`_sums` of the rows that `stacks` gave, piece by piece."""
    if rows.ndim == 3:
        yield _sums(data, rows, y, centre)
        return
    at_once = max(1, CELLS_AT_ONCE // data.num_params)
    for first in range(0, rows.shape[0], at_once):
        piece = dense(rows[first : first + at_once])[None].astype(np.float64, copy=False)
        yield _sums(data, piece, y[:, first : first + at_once], centre)


def _sums(data: LinearData, x: Array, y: Array, centre: Array) -> tuple[Array, ...]:
    """Over the stacked clients' rows, the sums of H_i, H_i², g_i, H_i g_i and |g_i|²."""
    z, k = with_ones(x, bool(data.fit_bias)), data.largest_curvature
    slopes = loss_slopes(data.loss_code, z @ centre, y)
    squared_norms = np.einsum("kij,kij->ki", z, z)
    turned = z.transpose(0, 2, 1)
    return (
        k * np.matmul(turned, z),
        k**2 * np.matmul(turned * squared_norms[:, None, :], z),
        np.einsum("ki,kij->kj", slopes, z),
        k * np.einsum("ki,kij->kj", slopes * squared_norms, z),
        np.einsum("ki,ki->k", slopes**2, squared_norms),
    )


def _largest_of(means: list[Array], radius: float) -> Array:
    """The maximum from the means of what `_sums` gives."""
    hessian, squared, gradient, pulled, length = means
    matrix = squared - np.matmul(hessian, hessian)
    linear = pulled - np.einsum("kij,kj->ki", hessian, gradient)
    constant = length - np.einsum("kj,kj->k", gradient, gradient)
    return np.asarray(np.maximum(constant + maximum_on_sphere(matrix, linear, radius), 0.0))
