"""The readable twin of `kernels/population_rows.py`: the same numbers, a client at a time, in plain Python."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.random import Stream, draw_key, unit
from asyncfed.kernels.population_rows import WIDTH, RowKeys, RowLaw

_normal = NormalDist().inv_cdf


def rows_of_client(client: int, rows: int, law: RowLaw, keys: RowKeys) -> tuple[NDArray[Any], NDArray[Any]]:
    """The features (rows, d) and targets (rows,) of one client, in double precision."""
    own = _around(law.weights.tolist(), law.heterogeneity, draw_key(int(keys.weights), client, 0))
    centre = _around([0.0] * len(own), law.shift, draw_key(int(keys.shift), client, 0))
    stream = Stream(draw_key(int(keys.rows), client, 0))
    x, y = np.empty((rows, len(own))), np.empty(rows)
    for i in range(rows):
        response = law.bias
        for j, (weight, middle) in enumerate(zip(own, centre, strict=True)):
            x[i, j] = value = middle + WIDTH * (stream.unit() - 0.5)
            response += weight * value
        drawn = stream.unit()
        if law.noise > 0.0:
            response += law.noise * _normal(drawn)
        y[i] = response if not law.labels else 1.0 if response > 0.0 else -1.0
    return x, y


def count_rows_of_client(client: int, key: int, least: int, bounds: Sequence[float]) -> int:
    """How many rows one client has."""
    return least + bisect_right(bounds, unit(draw_key(key, client, 0)))


def _around(middle: list[float], spread: float, key: int) -> list[float]:
    if spread <= 0.0:
        return middle
    stream = Stream(key)
    return [value + spread * _normal(stream.unit()) for value in middle]
