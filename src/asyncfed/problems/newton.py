"""Damped Newton, down to rounding error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from asyncfed.core.errors import DataError
from asyncfed.problems.objective import Objective

Array = NDArray[Any]
_TARGET = 1e-13
_ACCEPTABLE = 1e-9
_SUFFICIENT_DECREASE = 1e-4
_MAX_STEPS = 100
_MAX_HALVINGS = 40


def newton_minimum(objective: Objective) -> Array:
    """The minimiser reached from zero; of several, for a quadratic objective, the one of least norm.

    p ← p − t H⁻¹ ∇F with t = 1, ½, ¼, … until F falls enough. It ends when the gradient is a rounding error of the
    gradient at zero (1e-13 of it), or when rounding lets nothing improve any more.
    """
    params = np.zeros(len(objective.penalty))
    value, gradient = objective.value_and_gradient(params)
    scale = 1.0 + float(np.linalg.norm(gradient))
    for _ in range(_MAX_STEPS):
        if np.linalg.norm(gradient) <= _TARGET * scale < np.inf:
            return params
        better = _line_search(objective, params, value, gradient)
        if better is None:
            break
        params, value, gradient = better
    reached, allowed = float(np.linalg.norm(gradient)), _ACCEPTABLE * scale
    if not reached <= allowed < np.inf:
        raise DataError(
            f"Newton's method stopped at a gradient of norm {reached:.2g}; the limit is {allowed:.2g}. The data are "
            "too badly scaled to find the optimum. Standardise the features, or raise l2."
        )
    return params


def _line_search(
    objective: Objective, params: Array, value: float, gradient: Array
) -> tuple[Array, float, Array] | None:
    """The next (params, value, gradient), or None where no step is an improvement."""
    hessian = objective.hessian(params)
    if not np.isfinite(hessian).all():
        return None
    direction = -_solve(hessian, gradient)
    promised = float(gradient @ direction)
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        candidate = params + length * direction
        new_value, new_gradient = objective.value_and_gradient(candidate)
        falls = new_value < value and new_value <= value + _SUFFICIENT_DECREASE * length * promised
        # Next to the minimum the value's rounding hides its fall; there, halving the gradient is the measure.
        flattens = np.linalg.norm(new_gradient) < 0.5 * np.linalg.norm(gradient)
        if falls or flattens:
            return candidate, new_value, new_gradient
        length *= 0.5
    return None


def _solve(hessian: Array, gradient: Array) -> Array:
    """H⁻¹ g; where H is singular, the solution of least norm."""
    try:
        factor = cho_factor(hessian)
        pivots = np.abs(np.diag(factor[0]))
        if pivots.min() > 1e-7 * pivots.max():
            return np.asarray(cho_solve(factor, gradient))
    except LinAlgError:
        pass
    values, vectors = np.linalg.eigh(hessian)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    directions = vectors[:, kept]
    return np.asarray(directions @ ((directions.T @ gradient) / values[kept]))
