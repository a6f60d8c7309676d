"""A step size that a linear problem's own smoothness allows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from asyncfed.theory.batches import expected_smoothness_of
from asyncfed.theory.linear_data import LinearData

SHARE = 0.5
"""Of 1/ℒ: at 1/ℒ plain SGD just does not diverge, and its noise is as large as what is learnt."""


class _Rows(Protocol):
    @property
    def x(self) -> Any: ...
    @property
    def offsets(self) -> Any: ...


def step_size(rows: _Rows, batch_size: int, largest_curvature: float, l2: float = 0.0, fit_bias: bool = True) -> float:
    """½ / ℒ(b), ℒ(b) the largest expected smoothness of a client's mini-batches of b rows.

    ℒ(b) ≤ k ℒ₁(b) + l2, ℒ₁ that of least squares on the same rows and k the largest second derivative of the loss in
    the margin. The plain hinge has none; the squared hinge's, 1, gives steps of the right size.

    Args:
        rows: the clients' features `x` (n, d) and `offsets`, such as a `Linear` problem.
        batch_size: b, at least 1.
        largest_curvature: k > 0: 1 for least squares and the squared hinge, ¼ logistic, ½ softmax.
        l2: the weight of the penalty, 0 or more.
        fit_bias: whether there is a bias.

    Returns:
        The step size, above 0.

    >>> data = LinearData.of_clients([([[1.0], [-1.0]], [0, 0])])
    >>> step_size(data, batch_size=2, largest_curvature=1.0)
    0.5
    """
    targets = np.zeros(int(rows.offsets[-1]))
    squares = LinearData(rows.x, targets, rows.offsets, fit_bias=fit_bias)
    smoothness = largest_curvature * float(expected_smoothness_of(squares, batch_size).max()) + l2
    return SHARE / smoothness if smoothness > 0 else SHARE
