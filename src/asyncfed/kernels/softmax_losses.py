"""The softmax loss in NumPy: f(m, y) = log Σ_k exp(m_k) − m_y, with a margin m_k for each of K classes.

Its slope in m_k is p_k − [k = y] and its curvature p_k [k = l] − p_k p_l, with p = exp(m) / Σ exp(m).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError

Array = NDArray[Any]


def softmax_values(margins: Array, labels: Array) -> Array:
    """f of each row; `margins` (n, K), `labels` (n,) whole numbers 0 … K−1.

    >>> softmax_values(np.array([[0.0, 0.0]]), np.array([1])).round(4)
    array([0.6931])
    """
    highest = margins.max(axis=1)
    values: Array = np.log(np.exp(margins - highest[:, None]).sum(axis=1))
    values += highest - margins[np.arange(len(labels)), labels]
    return values


def class_probabilities(margins: Array) -> Array:
    """p of each row, (n, K)."""
    raised = np.exp(margins - margins.max(axis=1, keepdims=True))
    probabilities: Array = raised / raised.sum(axis=1, keepdims=True)
    return probabilities


def softmax_slopes(margins: Array, labels: Array) -> Array:
    """∂f/∂m_k of each row and class, (n, K)."""
    slopes = class_probabilities(margins)
    slopes[np.arange(len(labels)), labels] -= 1.0
    return slopes


def check_classes(y: Array, num_classes: int) -> None:
    """The loops use targets as row numbers of the params, unchecked: they must be 0 … K−1."""
    if num_classes < 2:
        raise DataError(f"There are {num_classes} classes; a softmax model needs at least 2.")
    wrong = (y < 0) | (y >= num_classes) | (y != np.floor(y))
    if wrong.any():
        raise DataError(
            f"y holds {y[wrong][0]:g}; the targets of a softmax model are whole numbers from 0 to {num_classes - 1}, "
            "one for each class. Number the classes, or regress with least_squares."
        )
