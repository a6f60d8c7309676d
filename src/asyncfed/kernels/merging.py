"""Merging one update into the model: a few numbers per parameter, done in one call instead of several.

For the small models of a large simulation, the calls of array arithmetic cost more than the arithmetic. The result goes
into `merged`, which the caller makes: handing a new array back takes longer. `merged` may not be `params`: compiled for
two arrays, a loop over one is slow. `mix_into` and `add_step_into` are for that, and come to the same bits.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled

Array = NDArray[Any]

_COLUMNS = 2048


@compiled
def mix(params: Array, keep: float, payload: Array, weight: float, merged: Array) -> None:
    """`merged = keep * params + weight * payload`."""
    for j in range(params.size):
        merged[j] = keep * params[j] + weight * payload[j]


@compiled
def add_step(params: Array, model: Array, start: Array, weight: float, merged: Array) -> None:
    """`merged = params + weight * (model - start)`."""
    for j in range(params.size):
        merged[j] = params[j] + weight * (model[j] - start[j])


@compiled
def mix_into(params: Array, keep: float, payload: Array, weight: float) -> None:
    """`params = keep * params + weight * payload`, in place."""
    for j in range(params.size):
        params[j] = keep * params[j] + weight * payload[j]


@compiled
def add_step_into(params: Array, model: Array, start: Array, weight: float) -> None:
    """`params = params + weight * (model - start)`, in place."""
    for j in range(params.size):
        params[j] = params[j] + weight * (model[j] - start[j])


@compiled
def move_slot(
    params: Array, slots: Array, row: int, payload: Array, weight: float, scale: float, merged: Array
) -> None:
    """Move a row of `slots` by `weight` towards `payload`; `merged` is `params` moved by `scale` times that."""
    for j in range(params.size):
        change = weight * (payload[j] - slots[row, j])
        slots[row, j] = payload[j] if weight == 1.0 else slots[row, j] + change
        merged[j] = params[j] + scale * change


@compiled
def add_slots(slots: Array, origin: Array, shares: Array, deviation: Array) -> None:
    """`deviation += (slot - origin) * share`, one slot after another, some columns at a time: they stay in a cache."""
    for first in range(0, origin.size, _COLUMNS):
        end = min(first + _COLUMNS, origin.size)
        total, begin = deviation[first:end], origin[first:end]
        for row in range(shares.size):
            slot, share = slots[row, first:end], shares[row]
            for j in range(end - first):
                total[j] += (slot[j] - begin[j]) * share


@compiled
def subtract(model: Array, origin: Array, change: Array) -> bool:
    """`change = model - origin`; whether all of it is finite."""
    endless = 0
    for j in range(model.size):
        difference = model[j] - origin[j]
        change[j] = difference
        endless |= 0 if difference - difference == 0.0 else 1
    return endless == 0
