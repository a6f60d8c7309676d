"""Inequality 5 and Lemmas 1 and 2: elementary facts the proofs use, all right as printed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.theory.bounds.arguments import count, curvature, number


def bregman_lower_bound(*, gradient_difference: ArrayLike, smoothness: float) -> float:
    """‖∇f(x) − ∇f(y)‖²/(2L) ≤ D_f(x, y) for f convex and L-smooth on the whole space (eq. 5, as printed). L > 0.

    >>> bregman_lower_bound(gradient_difference=[3, 4], smoothness=2)
    6.25

    Returns:
        The value of the formula.
    """
    difference = np.asarray(gradient_difference, dtype=float)
    return float(np.sum(difference**2)) / (2 * number("smoothness", smoothness, above=0))


def martingale_sum_bound(*, num_terms: int, gradient_variance: float) -> float:
    """m δ² ≥ E‖Σ (x_k − e_k)‖², martingale differences of conditional variance ≤ δ² (Lemma 1, eq. 9, as printed).

    Batches of a reshuffled epoch are not such differences. m ≥ 0, δ² ≥ 0.

    >>> martingale_sum_bound(num_terms=3, gradient_variance=2)
    6.0

    Returns:
        The value of the formula.
    """
    return count("num_terms", num_terms) * number("gradient_variance", gradient_variance, at_least=0)


def perturbed_convexity(
    *,
    gradient_at_x: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    value_at_y: float,
    value_at_z: float,
    smoothness: float,
    strong_convexity: float,
) -> tuple[float, float]:
    """Both sides of ⟨∇h(x), z−y⟩ ≥ h(z) − h(y) + (μ/4)‖y−z‖² − L‖z−x‖² (Lemma 2, eq. 10, as printed). 0 < μ ≤ L.

    h is L-smooth and μ-strongly convex; returns (left, right), left ≥ right.

    >>> perturbed_convexity(gradient_at_x=[1.0], x=[1.0], y=[0.0], z=[2.0], value_at_y=0, value_at_z=2,
    ...                     smoothness=1, strong_convexity=1)
    (2.0, 2.0)

    Returns:
        A `tuple[float, float]`.
    """
    largest, smallest = curvature(smoothness, strong_convexity)
    gradient, at, start, end = (np.asarray(vector, dtype=float) for vector in (gradient_at_x, x, y, z))
    rise = value_at_z - value_at_y + smallest / 4 * float(np.sum((start - end) ** 2))
    return float(np.sum(gradient * (end - start))), float(rise - largest * np.sum((end - at) ** 2))
