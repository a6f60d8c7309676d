"""Merging one update into the model: a few numbers per parameter, done in one call instead of several.

For the small models of a large simulation, the calls of array arithmetic cost more than the arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled

Array = NDArray[Any]


@compiled
def mixed(params: Array, keep: float, payload: Array, weight: float) -> Array:
    """`keep * params + weight * payload`, a new array."""
    merged = np.empty_like(params)
    for j in range(params.size):
        merged[j] = keep * params[j] + weight * payload[j]
    return merged


@compiled
def stepped(params: Array, model: Array, start: Array, weight: float) -> Array:
    """`params + weight * (model - start)`, a new array."""
    merged = np.empty_like(params)
    for j in range(params.size):
        merged[j] = params[j] + weight * (model[j] - start[j])
    return merged


@compiled
def slot_moved(params: Array, slot: Array, payload: Array, weight: float, scale: float) -> Array:
    """Move `slot` by `weight` towards `payload`, in place; answer with `params` moved by `scale` times that."""
    merged = np.empty_like(params)
    for j in range(params.size):
        change = weight * (payload[j] - slot[j])
        slot[j] = payload[j] if weight == 1.0 else slot[j] + change
        merged[j] = params[j] + scale * change
    return merged
