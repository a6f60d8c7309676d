"""The losses of a linear model: their names, their codes in the kernels, and their formulas in NumPy.

With margin m = z·w + b and target y (±1 for the last four):

| name          | f(m, y)            | slope ∂f/∂m          | curvature ∂²f/∂m²  |
|---------------|--------------------|----------------------|--------------------|
| least_squares | ½ (m − y)²         | m − y                | 1                  |
| mse           | (m − y)²           | 2 (m − y)            | 2                  |
| logistic      | log(1 + exp(−y m)) | −y / (1 + exp(y m))  | s (1 − s)          |
| hinge         | max(0, 1 − y m)    | −y if y m < 1 else 0 | none               |
| squared_hinge | ½ max(0, 1 − y m)² | −y max(0, 1 − y m)   | 1 if y m < 1       |
| huber_hinge   | t (1 − y m − t/2)/h | −y t / h            | 1/h, see below     |

with s = 1 / (1 + exp(−y m)) and t = 1 − y m cut to [0, h]: the Huber hinge is the hinge with a parabola of width h, the
`hinge_width`, in place of its kink; its curvature is 1/h where 0 < 1 − y m ≤ h, else 0. `mse` is PyTorch's MSELoss,
which has no ½. At the hinge's kink the slope is 0, as PyTorch's clamp has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, did_you_mean

LEAST_SQUARES, MSE, LOGISTIC, HINGE, SQUARED_HINGE, HUBER_HINGE = range(6)
LOSS_CODES = {
    "least_squares": LEAST_SQUARES,
    "mse": MSE,
    "logistic": LOGISTIC,
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "huber_hinge": HUBER_HINGE,
}
CLASSIFICATION_LOSSES = frozenset({"logistic", "hinge", "squared_hinge", "huber_hinge"})

Array = NDArray[Any]


def loss_code(name: str) -> int:
    """The kernels' code of a loss.

    >>> loss_code("hinge")
    3
    """
    if name not in LOSS_CODES:
        raise ConfigError(f'loss is "{name}", which is no loss of a linear model. {did_you_mean(name, LOSS_CODES)}')
    return LOSS_CODES[name]


def loss_values(code: int, margins: Array, y: Array, hinge_width: float = 1.0) -> Array:
    """f(m, y) of each row. `hinge_width` is the Huber hinge's; the others have none.

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
    if code == HUBER_HINGE:
        shortfall = 1.0 - y * margins
        within = np.clip(shortfall, 0.0, hinge_width)
        return within * (shortfall - 0.5 * within) / hinge_width
    shortfall = np.maximum(0.0, 1.0 - y * margins)
    return shortfall if code == HINGE else 0.5 * shortfall**2


def loss_slopes(code: int, margins: Array, y: Array, hinge_width: float = 1.0) -> Array:
    """∂f/∂m of each row."""
    if code == LEAST_SQUARES:
        return margins - y
    if code == MSE:
        return 2.0 * (margins - y)
    if code == LOGISTIC:
        return -y * _logistic(-y * margins)
    if code == HINGE:
        return np.where(y * margins < 1.0, -y, 0.0)
    if code == HUBER_HINGE:
        return -y * np.clip((1.0 - y * margins) / hinge_width, 0.0, 1.0)
    return -y * np.maximum(0.0, 1.0 - y * margins)


def loss_curvatures(code: int, margins: Array, y: Array, hinge_width: float = 1.0) -> Array:
    """∂²f/∂m² of each row (of the squared and Huber hinge, which have none at y m = 1, the value from the right: 0)."""
    if code == LEAST_SQUARES:
        return np.ones_like(margins)
    if code == MSE:
        return np.full_like(margins, 2.0)
    if code == LOGISTIC:
        return _logistic(y * margins) * _logistic(-y * margins)
    if code == SQUARED_HINGE:
        return np.where(y * margins < 1.0, 1.0, 0.0)
    if code == HUBER_HINGE:
        shortfall = 1.0 - y * margins
        return np.where((shortfall > 0.0) & (shortfall <= hinge_width), 1.0 / hinge_width, 0.0)
    raise ConfigError("The hinge loss has no curvature. Use squared_hinge where a second derivative is needed.")


def _logistic(values: Array) -> Array:
    """1 / (1 + exp(−v))."""
    from scipy.special import expit  # when first needed: it takes a while to load

    logistic: Array = expit(values)
    return logistic
