"""Conjugate gradients: H⁻¹ g from products with H alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def conjugate_gradient(product: Callable[[Array], Array], target: Array, accuracy: float, most: int) -> Array:
    """v with |H v − target| ≤ accuracy · |target|, H symmetric and positive semidefinite; `product` is v ↦ H v.

    It starts from zero, so of several solutions it finds the shortest. It ends early, with the best so far, after
    `most` products or where H has no curvature left in the direction searched.

    >>> conjugate_gradient(lambda v: np.array([2.0, 4.0]) * v, np.array([2.0, 2.0]), 1e-12, 10)
    array([1. , 0.5])
    """
    solution = np.zeros_like(target)
    residual = target.copy()
    direction = residual.copy()
    square = float(residual @ residual)
    enough = accuracy**2 * square
    for _ in range(most):
        if square <= enough:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            break
        step = square / curvature
        solution += step * direction
        residual -= step * image
        square, before = float(residual @ residual), square
        direction = residual + (square / before) * direction
    return solution
