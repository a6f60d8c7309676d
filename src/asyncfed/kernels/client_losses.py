"""Every client's loss and number of right answers in one compiled pass over the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError
from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.losses import HINGE, HUBER_HINGE, LEAST_SQUARES, LOGISTIC, MSE
from asyncfed.kernels.rows import check_rows, frozen
from asyncfed.kernels.threads import run_split

Array = NDArray[Any]
_BLOCK = 256


@compiled
def _row_margins(x: Array, weights: Array, bias: Any, margins: Array) -> None:
    """Margins of consecutive rows, four at a time for four independent chains of additions."""
    rows, d = x.shape
    i = 0
    while i + 4 <= rows:
        m0 = m1 = m2 = m3 = bias
        for j in range(d):
            w = weights[j]
            m0 += w * x[i, j]
            m1 += w * x[i + 1, j]
            m2 += w * x[i + 2, j]
            m3 += w * x[i + 3, j]
        margins[i], margins[i + 1], margins[i + 2], margins[i + 3] = m0, m1, m2, m3
        i += 4
    while i < rows:
        m0 = bias
        for j in range(d):
            m0 += weights[j] * x[i, j]
        margins[i] = m0
        i += 1


@compiled
def block_loss(loss: int, hinge_width: float, margins: Array, y: Array) -> float:
    """The sum of f(m, y), in double precision whatever the data's."""
    total = 0.0
    if loss in (LEAST_SQUARES, MSE):
        for i in range(y.shape[0]):
            difference = np.float64(margins[i]) - y[i]
            total += difference * difference
        return 0.5 * total if loss == LEAST_SQUARES else total
    if loss == LOGISTIC:
        for i in range(y.shape[0]):
            signed = np.float64(y[i]) * margins[i]
            total += max(0.0, -signed) + np.log1p(np.exp(-abs(signed)))
        return total
    for i in range(y.shape[0]):
        signed = np.float64(y[i]) * margins[i]
        # Written so that a NaN margin, after a divergence, gives a NaN loss and not a perfect one.
        shortfall = 0.0 if signed >= 1.0 else 1.0 - signed
        if loss == HUBER_HINGE:
            within = hinge_width if shortfall >= hinge_width else shortfall
            total += within * (shortfall - 0.5 * within) / hinge_width
            continue
        total += shortfall if loss == HINGE else 0.5 * shortfall * shortfall
    return total


@compiled
def _losses_range(
    x: Array,
    y: Array,
    offsets: Array,
    first: int,
    last: int,
    params: Array,
    fit_bias: bool,
    loss: int,
    hinge_width: float,
    sums: Array,
    correct: Array,
) -> None:
    d = x.shape[1]
    weights = params[:d]
    bias = params[d] if fit_bias else x.dtype.type(0)
    margins = np.empty(_BLOCK, x.dtype)
    for client in range(first, last):
        total = 0.0
        right = 0
        end = offsets[client + 1]
        for a in range(offsets[client], end, _BLOCK):
            b = min(a + _BLOCK, end)
            _row_margins(x[a:b], weights, bias, margins)
            total += block_loss(loss, hinge_width, margins, y[a:b])
            for i in range(b - a):
                right += 1 if margins[i] * y[a + i] > 0 else 0
        sums[client] = total
        correct[client] = right


def client_losses(
    x: Array, y: Array, offsets: Array, params: Array, loss_code: int, threads: int = 1, hinge_width: float = 1.0
) -> tuple[Array, Array]:
    """(sum of f over each client's rows (C,) float64, number of its rows with y m > 0 (C,) int64).

    `params` has x's number of columns, or one more: the bias. The L2 term is not included. A margin of zero decides
    nothing and counts as wrong. The result does not depend on `threads` in any bit.
    """
    check_rows(x, y)
    trained = np.array(params, dtype=x.dtype)
    extra = trained.shape[0] - x.shape[1] if trained.ndim == 1 else -1
    if extra not in (0, 1):
        raise DataError(
            f"params have shape {trained.shape}; {x.shape[1]} features need that many numbers, or one more."
        )
    sums = np.empty(len(offsets) - 1)
    correct = np.empty(len(offsets) - 1, np.int64)
    rows, targets, bounds = frozen(x), frozen(y), frozen(offsets)
    width = float(hinge_width)

    def run(first: int, last: int) -> None:
        _losses_range(rows, targets, bounds, first, last, trained, extra == 1, loss_code, width, sums, correct)

    if threads == 1:
        run(0, len(sums))
    else:
        run_split(run, np.diff(offsets) * x.shape[1], threads)
    return sums, correct
