"""Draws of the distributions of `asyncfed.delays`, for compiled loops.

A distribution is three numbers, `(shape, a, b)`; its own `draw` is the readable twin. Both do the same operations in
the same order, and the logarithms and powers are those of the C library in both, so the draws are equal to the last
bit. Where a compiler or a library has it otherwise, `agrees` finds out, and the loop that would use them is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, fabs, log, log1p, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import mix64, unit
from asyncfed.kernels.compiled import compiled

CONSTANT, UNIFORM, EXPONENTIAL, SHIFTED_EXPONENTIAL, LOGNORMAL, PARETO = range(6)
SHAPES = {
    "constant": CONSTANT,
    "uniform": UNIFORM,
    "exponential": EXPONENTIAL,
    "shifted_exponential": SHIFTED_EXPONENTIAL,
    "lognormal": LOGNORMAL,
    "pareto": PARETO,
}
PROBES = 256
"""Draws by which a distribution is compared with its twin: whatever is rounded otherwise differs in many of them."""


# Wichura's polynomials, highest power first: in the middle, towards the tails, and far out in them.
_MIDDLE = (
    (2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0),
    (5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0),
)  # fmt: skip
_TAIL = (
    (7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0),
    (1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0),
)  # fmt: skip
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0),
)  # fmt: skip


@compiled
def _polynomial(coefficients: tuple[float, ...], r: float) -> float:
    value = coefficients[0]
    for i in range(1, 8):
        value = value * r + coefficients[i]
    return value


@compiled
def normal_quantile(p: float) -> float:
    """The standard normal's quantile: algorithm AS 241 of Wichura (1988), which Python's `statistics` uses, too."""
    q = p - 0.5
    if fabs(q) <= 0.425:
        r = 0.180625 - q * q
        return _polynomial(_MIDDLE[0], r) * q / _polynomial(_MIDDLE[1], r)
    r = sqrt(-log(p if q <= 0.0 else 1.0 - p))
    if r <= 5.0:
        x = _polynomial(_TAIL[0], r - 1.6) / _polynomial(_TAIL[1], r - 1.6)
    else:
        x = _polynomial(_FAR_TAIL[0], r - 5.0) / _polynomial(_FAR_TAIL[1], r - 5.0)
    return -x if q < 0.0 else x


@compiled
def draw(shape: int, a: float, b: float, u: float) -> float:
    """The draw of the uniform number `u`, 0 < u < 1."""
    if shape == UNIFORM:
        return a + u * (b - a)
    if shape == EXPONENTIAL:
        return -a * log1p(-u)
    if shape == SHIFTED_EXPONENTIAL:
        return a - b * log1p(-u)
    if shape == LOGNORMAL:
        return a * exp(b * normal_quantile(u))
    if shape == PARETO:
        return float(a * (1.0 - u) ** (-1.0 / b))
    return a


@compiled
def _draws(shape: int, a: float, b: float, units: NDArray[Any]) -> NDArray[Any]:
    drawn = np.empty(units.shape[0])
    for i in range(units.shape[0]):
        drawn[i] = draw(shape, a, b, units[i])
    return drawn


def agrees(numbers: tuple[int, float, float], twin: Callable[[float], float]) -> bool:
    """Whether compiled draws are those of `twin` in every bit, on some uniform numbers that include the extremes."""
    units = [unit(mix64(probe)) for probe in range(PROBES)]
    units += [2.0**-53, 1e-9, 0.5, 1.0 - 1e-9, 1.0 - 2.0**-53]
    drawn: list[float] = _draws(*numbers, np.array(units)).tolist()
    return drawn == [twin(u) for u in units]
