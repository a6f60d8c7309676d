"""What the recursions of P and M share: a value per merge, and the largest bound of the last few versions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.arguments import in_range


def merges(name: str, values: ArrayLike, num_updates: int, **limits: Any) -> NDArray[np.float64]:
    """`values` as (num_updates, 1) or (num_updates, J): one number for all merges, one each, or one for each of J.

    `limits`: those of `in_range`.

    >>> merges("gain", 0.5, 2)
    array([[0.5],
           [0.5]])
    """
    array = np.asarray(in_range(name, values, **limits))
    if array.ndim == 0:
        return np.full((num_updates, 1), float(array))
    if array.ndim > 2 or len(array) != num_updates:
        raise ConfigError(
            f"{name} has shape {array.shape}, but num_updates is {num_updates}. "
            "Give one number, one per update, or a row of them per update."
        )
    return array[:, None] if array.ndim == 1 else array


def window_maximum(bound: NDArray[np.float64], oldest: NDArray[np.int64], newest: int) -> NDArray[np.float64]:
    """max bound[o … newest] for every o of `oldest`.

    >>> window_maximum(np.array([3.0, 1.0, 2.0]), np.array([0, 1, 2]), 2)
    array([3., 2., 2.])
    """
    start = int(oldest.min())
    backwards = np.maximum.accumulate(bound[start : newest + 1][::-1])
    return backwards[newest - oldest]
