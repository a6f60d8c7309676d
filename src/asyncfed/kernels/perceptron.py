"""Local SGD on a network of linear layers and rectifiers, compiled: the twin of `kernels/perceptron_reference.py`.

No result depends on the threads, on what else is trained in the call, or on the processor as long as its exponential is
the same: each training is done alone, from beginning to end, with the sums of `dense_products.py`. The room it works in
is small enough to stay in a processor's second cache for models of up to some 100,000 params.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels import perceptron_loops as loops
from asyncfed.kernels.dense_products import DENSE_BYTES
from asyncfed.kernels.vector_code import GROUP

Array = NDArray[Any]


class Layer(NamedTuple):
    """A linear layer, whether a rectifier follows, and its first places in the params (`bias` None without one)."""

    outputs: int
    inputs: int
    weight: int
    bias: int | None
    rectified: bool


class Room:
    """What one training after another works in; `batch` is the most rows a step may read."""

    def __init__(self, layers: Sequence[Layer], batch: int, dtype: np.dtype[Any]) -> None:
        lanes = DENSE_BYTES // dtype.itemsize
        table = np.zeros((len(layers), loops.COLUMNS), np.int64)
        place = 0
        for line, layer in zip(table, layers, strict=True):
            bias = -1 if layer.bias is None else layer.bias
            line[:5] = layer.outputs, layer.inputs, layer.rectified, layer.weight, bias
            line[loops.ROWS] = _round_up(layer.outputs, GROUP)
            line[loops.WIDTH], line[loops.OUT_WIDTH] = (_round_up(w, lanes) for w in (layer.inputs, layer.outputs))
            line[loops.WEIGHT_AT] = place
            line[loops.BIAS_AT] = place + line[loops.ROWS] * line[loops.WIDTH]
            place = int(line[loops.BIAS_AT] + line[loops.OUT_WIDTH])
        self.copy_size = place
        place *= 3  # the params, what they were at the start, velocities or corrections
        into, place = place, place + batch * int(table[0, loops.WIDTH])
        for line in table:
            size = batch * int(line[loops.OUT_WIDTH])
            line[loops.IN_AT], line[loops.OUT_AT], line[loops.SLOPE_AT] = into, place, place + size
            into, place = place, place + 2 * size
        self.layers, self.batch = table, batch
        # Zeros, because nothing ever writes what is filled up; in whole vectors, because that is faster.
        numbers = np.zeros(place + lanes, dtype)
        first = -numbers.ctypes.data // dtype.itemsize % lanes
        self.numbers = numbers[first : first + place]


class Tasks(NamedTuple):
    """Trainings of one call, k of them; see `perceptron_loops.train_range` for the columns."""

    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]
    numbers: NDArray[np.float64]


def train_perceptrons(
    x: Array,
    targets: Array,
    room: Room,
    starts: Array,
    trained: Array,
    paths: Array | None,
    corrections: Array | None,
    tasks: Tasks,
    first: int,
    last: int,
) -> None:
    """Carry out tasks `first` to `last`.

    Args:
        x: all rows (n, d).
        targets: int64 (n,) for classes and the cross-entropy, or real (n, outputs) for the mean squared error.
        room: made for these layers, and for batches as large as those of the tasks.
        starts: params to start from, (k, p).
        trained: where the params arrived at go; the same as `starts` if there are no paths.
        paths: (k, p + 2): what `sgd_loops.add_gap` adds up is added to it.
        corrections: (k, p), added to each gradient; then no task may have momentum.
        tasks: what to train, and how.
        first: the first task to carry out.
        last: the one after the last.
    """
    none = np.empty((1, 0), x.dtype)
    classes = targets.ndim == 1
    loops.train_range(
        x,
        targets if classes else NO_LABELS,
        none if classes else targets,
        room.layers,
        room.numbers,
        room.copy_size,
        starts,
        trained,
        _NO_PATHS if paths is None else paths,
        none if corrections is None else corrections,
        *tasks,
        first,
        last,
    )


NO_LABELS = np.empty(0, np.int64)
_NO_PATHS = np.empty((1, 0))


def _round_up(width: int, unit: int) -> int:
    return -(-width // unit) * unit
