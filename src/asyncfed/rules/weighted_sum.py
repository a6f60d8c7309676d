"""The weighted sum of a merge, one update at a time."""

from __future__ import annotations

from functools import cache

import numpy as np

from asyncfed.core.types import Payload


class WeightedSum:
    """Adds updates to a model. Compiled loops are loaded when the first one is made, by whoever will merge."""

    __slots__ = ("_add_step", "_mix")

    def __init__(self) -> None:
        from asyncfed.kernels.merging import add_step, mix

        self._add_step, self._mix = add_step, mix

    def add(
        self, params: np.ndarray, keep: float, of: Payload, model: np.ndarray, start: np.ndarray, weight: float
    ) -> np.ndarray:
        """`keep * params + weight * payload`, the payload being the model, or its difference from the start."""
        merged = np.empty_like(params)
        if of == "model":
            self._mix(params, keep, model, weight, merged)
        elif keep == 1.0:
            self._add_step(params, model, start, weight, merged)
        else:
            self._mix(params, keep, model - start, weight, merged)
        return merged


@cache
def weighted_sum() -> WeightedSum:
    """The one that all rules share."""
    return WeightedSum()
