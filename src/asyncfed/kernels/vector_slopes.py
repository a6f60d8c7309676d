"""The slopes ∂f/∂m of `kernels/losses.py` for four rows at once, as LLVM vector code.

Each is a function of the code that is being written, four margins and four targets. Comparisons are written so that a
NaN margin, after a divergence, gives what the loops without vectors gave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asyncfed.kernels.losses import HINGE, HUBER_HINGE, LEAST_SQUARES, LOGISTIC, MSE, SQUARED_HINGE
from asyncfed.kernels.vector_code import GROUP, VectorCode

Slopes = Callable[[VectorCode, Any, Any, Any], Any]


def _least_squares(code: VectorCode, margins: Any, targets: Any, _width: Any) -> Any:
    return code.builder.fsub(margins, targets)


def _mse(code: VectorCode, margins: Any, targets: Any, _width: Any) -> Any:
    difference = code.builder.fsub(margins, targets)
    return code.builder.fadd(difference, difference)


def _logistic(code: VectorCode, margins: Any, labels: Any, _width: Any) -> Any:
    """−y / (1 + exp(y m)), with numba's exponential, number by number."""
    builder = code.builder
    powers = [code.call(_exponential, number) for number in code.ungrouped(builder.fmul(labels, margins))]
    return builder.fdiv(builder.fneg(labels), builder.fadd(code.constant(1.0), code.grouped(powers)))


def _exponential(value: Any) -> Any:
    return np.exp(value)


def _hinge(code: VectorCode, margins: Any, labels: Any, _width: Any) -> Any:
    reached = code.builder.fcmp_ordered(">=", code.builder.fmul(labels, margins), code.constant(1.0))
    return code.builder.select(reached, code.constant(0.0), code.builder.fneg(labels))


def _squared_hinge(code: VectorCode, margins: Any, labels: Any, _width: Any) -> Any:
    shortfall, reached = _shortfall(code, margins, labels)
    slopes = code.builder.fmul(code.builder.fneg(labels), shortfall)
    return code.builder.select(reached, code.constant(0.0), slopes)


def _huber_hinge(code: VectorCode, margins: Any, labels: Any, width: Any) -> Any:
    builder = code.builder
    shortfall, reached = _shortfall(code, margins, labels)
    widths = code.grouped([width] * GROUP)
    against = builder.fneg(labels)
    beyond = builder.fcmp_ordered(">=", shortfall, widths)
    slopes = builder.select(beyond, against, builder.fmul(against, builder.fdiv(shortfall, widths)))
    return builder.select(reached, code.constant(0.0), slopes)


def _shortfall(code: VectorCode, margins: Any, labels: Any) -> tuple[Any, Any]:
    """1 − y m, and where it is not above zero."""
    shortfall = code.builder.fsub(code.constant(1.0), code.builder.fmul(labels, margins))
    return shortfall, code.builder.fcmp_ordered("<=", shortfall, code.constant(0.0))


SLOPES: dict[int, Slopes] = {
    LEAST_SQUARES: _least_squares,
    MSE: _mse,
    LOGISTIC: _logistic,
    HINGE: _hinge,
    SQUARED_HINGE: _squared_hinge,
    HUBER_HINGE: _huber_hinge,
}
