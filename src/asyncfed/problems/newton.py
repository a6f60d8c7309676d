"""Damped Newton, down to rounding error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError
from asyncfed.kernels.losses import HUBER_HINGE
from asyncfed.problems.conjugate_gradient import conjugate_gradient
from asyncfed.problems.objective import Objective

Array = NDArray[Any]
_TARGET = 1e-13
_ACCEPTABLE = 1e-9
_SUFFICIENT_DECREASE = 1e-4
_MAX_STEPS = 100
_MAX_HALVINGS = 40
_MOST_PARAMS_WITH_A_HESSIAN = 1500
"""Beyond it a step is found by conjugate gradients: at 10,000 params the Hessian would take 800 MB."""
_MOST_PRODUCTS = 2000
_DAMPING = 1e-2
_EASY_WIDTH = 2.0
_ROUNDING = 1e-13


class Minimisable(Protocol):
    """A convex function of params (p,), with the L2 weight of each param in `penalty`."""

    @property
    def penalty(self) -> Array: ...
    def value_and_gradient(self, params: Array) -> tuple[float, Array]: ...
    def hessian(self, params: Array) -> Array: ...
    def hessian_product(self, params: Array) -> Callable[[Array], Array]: ...


def newton_minimum(objective: Minimisable) -> Array:
    """The minimiser reached from zero; of several, for a quadratic objective, the one of least norm.

    p ← p − t H⁻¹ ∇F with t = 1, ½, ¼, … until F falls enough. It ends when the gradient is a rounding error of the
    gradient at zero (1e-13 of it), or when rounding lets nothing improve any more. With more than 1,500 params H⁻¹ ∇F
    is found by conjugate gradients and H is never formed. A narrow Huber hinge is reached by way of wider ones, whose
    minimisers lie near each other.
    """
    params = np.zeros(len(objective.penalty))
    if not _is_huber(objective):
        return _descend(objective, params)
    assert isinstance(objective, Objective)
    halvings = max(0, int(np.ceil(np.log2(_EASY_WIDTH / objective.hinge_width))))
    for width in objective.hinge_width * 2.0 ** np.arange(halvings, -1, -1):
        params = _descend(replace(objective, hinge_width=float(width)), params)
    return params


def _is_huber(objective: Minimisable) -> bool:
    return isinstance(objective, Objective) and objective.loss_code == HUBER_HINGE


def _descend(objective: Minimisable, params: Array) -> Array:
    """The minimiser reached from `params`."""
    value, gradient = objective.value_and_gradient(params)
    at_zero = objective.value_and_gradient(np.zeros_like(params))[1] if params.any() else gradient
    scale = 1.0 + float(np.linalg.norm(at_zero))
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
    objective: Minimisable, params: Array, value: float, gradient: Array
) -> tuple[Array, float, Array] | None:
    """The next (params, value, gradient), or None where no step is an improvement."""
    direction = _newton_direction(objective, params, gradient)
    if direction is None:
        return None
    promised = float(gradient @ direction)
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        candidate = params + length * direction
        new_value, new_gradient = objective.value_and_gradient(candidate)
        falls = new_value < value and new_value <= value + _SUFFICIENT_DECREASE * length * promised
        # Next to the minimum the value's rounding hides its fall; there, halving the gradient is the measure.
        flattens = np.linalg.norm(new_gradient) < 0.5 * np.linalg.norm(gradient)
        if _is_huber(objective):  # whose gradient may be short in many places
            flattens = flattens and new_value <= value + _ROUNDING * abs(value)
        if falls or flattens:
            return candidate, new_value, new_gradient
        length *= 0.5
    return None


def _newton_direction(objective: Minimisable, params: Array, gradient: Array) -> Array | None:
    """−(H + damping)⁻¹ ∇F, or None where H is not finite."""
    steepness = float(np.linalg.norm(gradient))
    # Where every row is on the Huber hinge's straight part the Hessian is flat, yet the way down is long.
    damping = _DAMPING * steepness if _is_huber(objective) else 0.0
    if len(params) > _MOST_PARAMS_WITH_A_HESSIAN:
        product = objective.hessian_product(params)
        # Far from the minimum a rough direction will do; next to it each step should gain six digits.
        accuracy = min(1e-2, max(1e-6, steepness))
        direction = -conjugate_gradient(lambda v: product(v) + damping * v, gradient, accuracy, _MOST_PRODUCTS)
        return direction if np.isfinite(direction).all() else None
    hessian = objective.hessian(params)
    if damping:
        hessian += damping * np.eye(len(params))
    return -_solve(hessian, gradient) if np.isfinite(hessian).all() else None


def _solve(hessian: Array, gradient: Array) -> Array:
    """H⁻¹ g; where H is singular, the solution of least norm."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve  # when first needed: it takes a while to load

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
