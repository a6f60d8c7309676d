"""Local mini-batch SGD on multi-class logistic regression, and every client's softmax loss.

The params are K rows (w_k, then b_k if there are biases), one a class, flattened. The step is that of `kernels/sgd.py`
with f(m, y) = log Σ_k exp(m_k) − m_y of the margins m_k = z·w_k + b_k. Targets are 0 … K−1, in the dtype of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError
from asyncfed.kernels.packed_training import PackedTraining
from asyncfed.kernels.rows import check_rows, dense_rows, frozen
from asyncfed.kernels.softmax_loops import losses_range, train_and_follow_range
from asyncfed.kernels.softmax_losses import check_classes
from asyncfed.kernels.threads import run_split

Array = NDArray[Any]


class SoftmaxSgd(PackedTraining):
    """SGD on a softmax model: see the head of this file, and `PackedTraining` for the calls."""

    full_loop = train_and_follow_range

    def __init__(
        self,
        x: Array,
        y: Array,
        offsets: Array,
        num_classes: int,
        l2: float,
        penalize_bias: bool,
        fit_bias: bool,
    ) -> None:
        check_classes(y, num_classes)
        model = (int(num_classes), float(l2), bool(penalize_bias), bool(fit_bias))
        super().__init__(dense_rows(x, y, offsets), model, int(num_classes), fit_bias)


def softmax_client_losses(
    x: Array, y: Array, offsets: Array, params: Array, num_classes: int, fit_bias: bool, threads: int = 1
) -> tuple[Array, Array]:
    """(sum of f over each client's rows (C,) float64, number of its rows whose own class has the highest margin).

    The L2 term is not included. Where two margins are equally high, nothing is decided, which counts as wrong. The
    result does not depend on `threads` in any bit.
    """
    check_rows(x, y)
    check_classes(y, num_classes)
    trained = np.array(params, dtype=x.dtype)
    needed = num_classes * (x.shape[1] + bool(fit_bias))
    if trained.shape != (needed,):
        raise DataError(f"params have shape {trained.shape}; {num_classes} classes need {needed} numbers.")
    sums = np.empty(len(offsets) - 1)
    correct = np.empty(len(offsets) - 1, np.int64)
    rows, targets, bounds = frozen(x), frozen(y), frozen(offsets)

    def run(first: int, last: int) -> None:
        losses_range(rows, targets, bounds, first, last, trained, num_classes, bool(fit_bias), sums, correct)

    if threads == 1:
        run(0, len(sums))
    else:
        run_split(run, np.diff(offsets) * x.shape[1] * num_classes, threads)
    return sums, correct
