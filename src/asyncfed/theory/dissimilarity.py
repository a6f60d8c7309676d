"""How much the clients disagree: at the optimum (Assumption 4) and everywhere (Assumption 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels.losses import loss_slopes
from asyncfed.theory.blocks import blocks
from asyncfed.theory.curvature import mean_second_moments
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.minimum import require_optimum
from asyncfed.theory.spectra import MOST_PARAMS_WITH_A_MATRIX, clients_by_size, second_moments, stacks, with_ones

Array = NDArray[Any]


def client_gradient_norms(data: LinearData, at: Any) -> Array:
    """|∇F_c(x)|, (C,), at the params `at`, penalty included.

    Args:
        data: the clients' rows and the loss.
        at: x, p numbers.
    """
    point = data.point(at, "at")
    norms = np.empty(data.num_clients)
    for block in blocks(data):
        slopes = loss_slopes(data.loss_code, block.margins(point), block.y, data.hinge_width)
        gradients = block.weighted_rows(slopes) / np.diff(block.starts)[:, None] + data.penalty * point
        norms[block.clients] = np.linalg.norm(gradients, axis=1)
    return norms


def largest_row_gradient(data: LinearData, at: Any) -> float:
    """max_i |∇f_i(x)| over all rows, at the params `at`, penalty included: no mini-batch's mean gradient is longer.

    Args:
        data: the clients' rows and the loss.
        at: x, p numbers.

    >>> data = LinearData.of_clients([([[0.0], [0.0]], [1.0, 4.0]), ([[0.0]], [3.0])])
    >>> largest_row_gradient(data, [0.0, 0.0]), client_gradient_norms(data, [0.0, 0.0])
    (4.0, array([2.5, 3. ]))
    """
    point = data.point(at, "at")
    pull, longest = data.penalty * point, 0.0
    for block in blocks(data):
        slopes = loss_slopes(data.loss_code, block.margins(point), block.y, data.hinge_width)
        # |s z + pull|² without a row of p numbers for each: s² |z|² + 2 s z·pull + |pull|².
        squares = slopes**2 * block.squared_norms() + 2.0 * slopes * block.margins(pull) + pull @ pull
        longest = max(longest, float(squares.max()))
    return float(np.sqrt(longest))


def optimum_heterogeneity(data: LinearData, best: Array | None = None) -> float:
    """ν*² = (1/C) Σ_c |∇F_c(x*)|², the β*² of Assumption 4; 0 if all clients share the minimiser `best`, x*.

    Args:
        data: the clients' rows and the loss.
        best: x*, (p,), if it is already known.

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> round(optimum_heterogeneity(data), 5)
    1.87111
    """
    return float(np.mean(client_gradient_norms(data, require_optimum(data) if best is None else best) ** 2))


def largest_gradient_at_optimum(data: LinearData, best: Array | None = None) -> float:
    """ν_max = max_c |∇F_c(x*)|, not squared.

    Args:
        data: the clients' rows and the loss.
        best: x*, (p,), if it is already known.

    >>> data = LinearData.of_clients([([[0.0]], [1.0]), ([[0.0]], [3.0])])
    >>> largest_gradient_at_optimum(data)
    1.0
    """
    return float(client_gradient_norms(data, require_optimum(data) if best is None else best).max())


def dissimilarity(data: LinearData, s: float = 1.0, best: Array | None = None) -> tuple[float, float]:
    """(φ², β²) of Assumption 3: (1/C) Σ_c |∇F_c(x) − ∇F(x)|² ≤ φ² |∇F(x)|² + β² for every x.

    For quadratic losses with Hessians H_c and mean H: φ² = (1 + s) λmax(H⁻¹ [(1/C) Σ (H_c − H)²] H⁻¹) and
    β² = (1 + 1/s) ν*², for any `s` > 0: a small s makes φ² small and β² large. Refused, with the reason of
    `why_no_dissimilarity`, for other losses, for a singular H, and beyond 1,500 params.

    Args:
        data: the clients' rows and the loss.
        s: above 0: a small s makes φ² small and β² large.
        best: x*, (p,), if it is already known.

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> [round(value, 5) for value in dissimilarity(data)]
    [1.14456, 3.74222]
    """
    if not (np.isfinite(s) and s > 0):
        raise ConfigError(f"s is {s}; it must be a positive number.")
    reason = why_no_dissimilarity(data)
    if reason is not None:
        raise DataError(reason)
    k = data.largest_curvature
    mean = mean_second_moments(data)
    values, vectors = np.linalg.eigh(k * mean + np.diag(data.penalty))
    if values[0] <= len(values) * np.finfo(np.float64).eps * values[-1]:
        raise DataError(_SINGULAR)
    spread = k**2 * (_mean_squared_moments(data) - mean @ mean)
    scaled = (vectors / values).T @ spread @ (vectors / values)
    phi2 = (1.0 + s) * max(0.0, float(np.linalg.eigvalsh(scaled)[-1]))
    return phi2, (1.0 + 1.0 / s) * optimum_heterogeneity(data, best)


_SINGULAR = "F has directions without curvature, so no φ of Assumption 3 need exist. Give more rows, or an l2 above 0."


def why_no_dissimilarity(data: LinearData) -> str | None:
    """Why `dissimilarity` has no formula for such data, in a sentence; None if it has.

    Args:
        data: the clients' rows and the loss.
    """
    if not data.is_quadratic:
        return f'Assumption 3 has no closed form for the loss "{data.loss}"; only for least_squares and mse.'
    if data.num_params > MOST_PARAMS_WITH_A_MATRIX:
        return f"φ² needs matrices of {data.num_params} × {data.num_params}; it is computed up to 1,500 params."
    return None


def _mean_squared_moments(data: LinearData) -> Array:
    """(1/C) Σ_c (Z_cᵀ Z_c / n_c)², shape (p, p)."""
    total = np.zeros((data.num_params, data.num_params))
    for owners in clients_by_size(data):
        for _, rows in stacks(data, owners):
            if rows.ndim == 3 and rows.shape[1] < data.num_params:
                z = with_ones(rows, bool(data.fit_bias))
                products = np.matmul(np.matmul(z, z.transpose(0, 2, 1)), z) / rows.shape[1] ** 2
                total += z.reshape(-1, z.shape[-1]).T @ products.reshape(-1, z.shape[-1])
            else:
                moments = second_moments(rows, bool(data.fit_bias))
                flat = moments.reshape(-1, data.num_params)
                total += flat.T @ flat
    return total / data.num_clients
