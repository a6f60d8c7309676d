"""How fast the start is forgotten: (1 − x)^(T+1), and what averaging with growing weights leaves of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.theory.bounds.arguments import Curve, as_curve, count, number, whole


def remaining(*, contraction: float, last_index: ArrayLike, called: str = "contraction", advice: str = "") -> Curve:
    """a = (1 − x)^(T+1), `contraction` x in (0, 1), `last_index` T ≥ 0.

    An x that is out of range is `called` what the caller made it of.

    >>> remaining(contraction=0.5, last_index=[0, 1])
    array([0.5 , 0.25])
    """
    return as_curve(np.exp(log_remaining(contraction, last_index, called, advice)))


def averaged_remaining(
    *, contraction: float, last_index: ArrayLike, called: str = "contraction", advice: str = ""
) -> Curve:
    """a/(1 − a) for a = (1 − x)^(T+1): the share of the start left in the average with weights (1 − x)^−(t+1).

    Arguments as `remaining`.

    >>> averaged_remaining(contraction=0.5, last_index=1)
    0.3333333333333333
    """
    with np.errstate(over="ignore"):
        return as_curve(1 / np.expm1(-log_remaining(contraction, last_index, called, advice)))


def growing_weights(*, contraction: float, last_index: int) -> NDArray[np.float64]:
    """The weights (1 − x)^−(t+1) of x_0 … x_T, scaled to sum to 1. `contraction` x in (0, 1), `last_index` T ≥ 0.

    >>> growing_weights(contraction=0.5, last_index=2)
    array([0.14285714, 0.28571429, 0.57142857])

    Returns:
        The weights, T + 1 of them.
    """
    last = count("last_index", last_index)
    relative: NDArray[np.float64] = np.exp(
        np.arange(last, -1, -1) * np.log1p(-number("contraction", contraction, above=0, below=1))
    )
    return relative / float(relative.sum())


def log_remaining(contraction: float, last_index: ArrayLike, called: str, advice: str) -> Curve:
    """(T + 1) log(1 − x), which does not underflow."""
    shrink = number(called, contraction, above=0, below=1, advice=advice)
    return (whole("last_index", last_index) + 1) * np.log1p(-shrink)
