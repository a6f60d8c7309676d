"""The losses of a linear model: their names, their codes in the kernels, and their formulas in NumPy.

With margin m = z·w + b and target y (±1 for the last three):

| name          | f(m, y)            | slope ∂f/∂m          | curvature ∂²f/∂m²  |
|---------------|--------------------|----------------------|--------------------|
| least_squares | ½ (m − y)²         | m − y                | 1                  |
| mse           | (m − y)²           | 2 (m − y)            | 2                  |
| logistic      | log(1 + exp(−y m)) | −y / (1 + exp(y m))  | s (1 − s)          |
| hinge         | max(0, 1 − y m)    | −y if y m < 1 else 0 | none               |
| squared_hinge | ½ max(0, 1 − y m)² | −y max(0, 1 − y m)   | 1 if y m < 1       |

with s = 1 / (1 + exp(−y m)). `mse` is PyTorch's MSELoss, which has no ½. At the hinge's kink the slope is 0, as
PyTorch's clamp has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from asyncfed.core.errors import ConfigError, did_you_mean

LEAST_SQUARES, MSE, LOGISTIC, HINGE, SQUARED_HINGE = range(5)
LOSS_CODES = {
    "least_squares": LEAST_SQUARES,
    "mse": MSE,
    "logistic": LOGISTIC,
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
}
CLASSIFICATION_LOSSES = frozenset({"logistic", "hinge", "squared_hinge"})

Array = NDArray[Any]


def loss_code(name: str) -> int:
    """The kernels' code of a loss.

    >>> loss_code("hinge")
    3
    """
    if name not in LOSS_CODES:
        raise ConfigError(f'loss is "{name}", which is no loss of a linear model. {did_you_mean(name, LOSS_CODES)}')
    return LOSS_CODES[name]


def loss_values(code: int, margins: Array, y: Array) -> Array:
    """f(m, y) of each row.

    >>> loss_values(MSE, np.array([3.0]), np.array([1.0]))
    array([4.])
    """
    if code == LEAST_SQUARES:
        return 0.5 * (margins - y) ** 2
    if code == MSE:
        return (margins - y) ** 2
    if code == LOGISTIC:
        values: Array = np.logaddexp(0.0, -y * margins)
        return values
    shortfall = np.maximum(0.0, 1.0 - y * margins)
    return shortfall if code == HINGE else 0.5 * shortfall**2


def loss_slopes(code: int, margins: Array, y: Array) -> Array:
    """∂f/∂m of each row."""
    if code == LEAST_SQUARES:
        return margins - y
    if code == MSE:
        return 2.0 * (margins - y)
    if code == LOGISTIC:
        return -y * expit(-y * margins)
    if code == HINGE:
        return np.where(y * margins < 1.0, -y, 0.0)
    return -y * np.maximum(0.0, 1.0 - y * margins)


def loss_curvatures(code: int, margins: Array, y: Array) -> Array:
    """∂²f/∂m² of each row (of the squared hinge, which has none at its kink, the value from the right: 0)."""
    if code == LEAST_SQUARES:
        return np.ones_like(margins)
    if code == MSE:
        return np.full_like(margins, 2.0)
    if code == LOGISTIC:
        return expit(y * margins) * expit(-y * margins)
    if code == SQUARED_HINGE:
        return np.where(y * margins < 1.0, 1.0, 0.0)
    raise ConfigError("The hinge loss has no curvature. Use squared_hinge where a second derivative is needed.")
