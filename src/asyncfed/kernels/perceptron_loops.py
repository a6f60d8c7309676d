"""The compiled loops of `kernels/perceptron.py`: local SGD on a network of linear layers, in one order of sums.

A training works in a `room` of its own, where widths are filled up with zeros (`perceptron.Room`): the params, what
they were at the start, velocities or corrections, and what goes into and comes out of each layer. Each line of `layers`
has the columns that are named below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.dense_products import add_weighted_rows, copy_numbers, row_products
from asyncfed.kernels.sgd_loops import add_gap, shuffle

Array = NDArray[Any]

OUTPUTS, INPUTS, RECTIFIED = 0, 1, 2
"""Numbers that come out of a layer and go into it; 1 if what is below zero becomes zero."""

WEIGHT, BIAS = 3, 4
"""First places in the flat params; −1 without a bias."""

ROWS, WIDTH, OUT_WIDTH = 5, 6, 7
"""Outputs rounded up to four; inputs and outputs rounded up to whole vectors."""

WEIGHT_AT, BIAS_AT, IN_AT, OUT_AT, SLOPE_AT = 8, 9, 10, 11, 12
"""First places in the room; those of the params count from the beginning of a copy of them."""

COLUMNS = 13


@compiled
def _load(flat: Array, layers: Array, room: Array) -> None:
    """Flat params into a copy of them in the room; what is filled up is made zero."""
    for layer in layers:
        width, inputs = layer[WIDTH], layer[INPUTS]
        for j in range(layer[ROWS]):
            place = layer[WEIGHT_AT] + j * width
            used = inputs if j < layer[OUTPUTS] else 0
            copy_numbers(flat, layer[WEIGHT] + j * inputs, used, room, place)
            room[place + used : place + width] = 0
        room[layer[BIAS_AT] : layer[BIAS_AT] + layer[OUT_WIDTH]] = 0
        if layer[BIAS] >= 0:
            copy_numbers(flat, layer[BIAS], layer[OUTPUTS], room, layer[BIAS_AT])


@compiled
def _store(room: Array, layers: Array, flat: Array) -> None:
    """The inverse of `_load`."""
    for layer in layers:
        width, inputs = layer[WIDTH], layer[INPUTS]
        for j in range(layer[OUTPUTS]):
            copy_numbers(room, layer[WEIGHT_AT] + j * width, inputs, flat, layer[WEIGHT] + j * inputs)
        if layer[BIAS] >= 0:
            copy_numbers(room, layer[BIAS_AT], layer[OUTPUTS], flat, layer[BIAS])


@compiled
def _matrix(room: Array, begin: int, rows: int, width: int) -> Array:
    return room[begin : begin + rows * width].reshape((rows, width))


@compiled
def _forward(layers: Array, room: Array, size: int) -> None:
    """What comes out of each layer, for the rows that lie before the first."""
    zero = room.dtype.type(0)
    for layer in layers:
        below = _matrix(room, layer[IN_AT], size, layer[WIDTH])
        out = _matrix(room, layer[OUT_AT], size, layer[OUT_WIDTH])
        row_products(below, size, _matrix(room, layer[WEIGHT_AT], layer[ROWS], layer[WIDTH]), out)
        outputs, rectified = layer[OUTPUTS], layer[RECTIFIED] != 0
        bias = room[layer[BIAS_AT] : layer[BIAS_AT] + outputs]
        for i in range(size):
            row = out[i, :outputs]
            for j in range(outputs):
                value = row[j] + bias[j]
                row[j] = zero if rectified and value <= zero else value  # a NaN stays


@compiled
def _class_slopes(out: Array, outputs: int, labels: Array, weight: Any, slopes: Array) -> None:
    """`weight` times the class's probability, less one for the right class."""
    one = out.dtype.type(1)
    for i in range(labels.shape[0]):
        highest = out[i, 0]
        for k in range(1, outputs):
            highest = max(highest, out[i, k])
        total = out.dtype.type(0)
        for k in range(outputs):
            slopes[i, k] = np.exp(out[i, k] - highest)
            total += slopes[i, k]
        for k in range(outputs):
            slopes[i, k] /= total
        slopes[i, labels[i]] -= one
        for k in range(outputs):
            slopes[i, k] *= weight


@compiled
def _square_slopes(out: Array, outputs: int, targets: Array, rows: Array, weight: Any, slopes: Array) -> None:
    """`weight` times the slope of the mean over outputs of their squared errors."""
    factor = out.dtype.type(2.0 / outputs)
    for i in range(rows.shape[0]):
        for k in range(outputs):
            slopes[i, k] = (out[i, k] - targets[rows[i], k]) * factor * weight


@compiled
def _pass_back(layer: Array, room: Array, size: int, slopes: Array, lower: Array, rectified: bool) -> None:
    """The slopes of what goes into a layer; `rectified` says that the layer below cut it off at zero."""
    zero, real = room.dtype.type(0), room.dtype.type
    weights = _matrix(room, layer[WEIGHT_AT], layer[ROWS], layer[WIDTH])
    add_weighted_rows(slopes.reshape(-1), layer[OUTPUTS], 1, layer[OUT_WIDTH], weights, lower, size, real(0))
    if rectified:
        below = _matrix(room, layer[IN_AT], size, layer[WIDTH])
        for i in range(size):
            for k in range(layer[INPUTS]):
                if below[i, k] <= zero:
                    lower[i, k] = zero


@compiled
def _add_gradient(layer: Array, room: Array, size: int, slopes: Array, into: Array, keep: Any) -> None:
    """`into ← keep · into + gradient` of a layer's weights and bias, `into` being a copy of the params' room."""
    weights = _matrix(into, layer[WEIGHT_AT], layer[ROWS], layer[WIDTH])
    below = _matrix(room, layer[IN_AT], size, layer[WIDTH])
    add_weighted_rows(slopes.reshape(-1), size, layer[OUT_WIDTH], 1, below, weights, layer[OUTPUTS], keep)
    if layer[BIAS] >= 0:
        outputs = layer[OUTPUTS]
        bias = into[layer[BIAS_AT] : layer[BIAS_AT] + outputs]
        for j in range(outputs):
            bias[j] *= keep
        for i in range(size):
            for j in range(outputs):
                bias[j] += slopes[i, j]


@compiled
def train_one(
    x: Array,
    labels: Array,
    targets: Array,
    layers: Array,
    room: Array,
    copy_size: int,
    start: Array,
    trained: Array,
    path: Array,
    correction: Array,
    key: np.uint64,
    batch: int,
    steps: int,
    lr: float,
    decay: float,
    prox: float,
    momentum: float,
) -> None:
    """Train from `start` on one client's rows; the end goes into `trained`, which may be `start` without a path."""
    real = x.dtype.type
    n = x.shape[0]
    batch = max(1, min(batch, n))
    classes = labels.shape[0] > 0
    origin, moving = room[copy_size : 2 * copy_size], room[2 * copy_size : 3 * copy_size]
    followed, corrected, heavy, pulled = path.shape[0] > 0, correction.shape[0] > 0, momentum != 0.0, prox != 0.0
    _load(start, layers, room)
    if pulled:
        _load(start, layers, origin)
    if corrected:
        _load(correction, layers, moving)
    if heavy:
        moving[:] = 0
    order = np.arange(n).astype(np.uint32)
    of_batch = np.empty(batch, np.int64)
    word, epoch, done = key, 0, 0
    top = layers[layers.shape[0] - 1]
    while done < steps:
        word = shuffle(order, word)
        rate = lr / (epoch + 1.0) ** decay
        step, pull, kept = real(rate), real(prox if heavy else prox * rate), real(momentum)
        for first in range(0, n, batch):
            if done == steps:
                break
            if followed:
                _store(room, layers, trained)
                add_gap(trained, start, path)
            size = min(batch, n - first)
            weight = real(1.0 / size) if heavy else real(-rate / size)
            for i in range(size):
                copy_numbers(
                    x, order[first + i] * x.shape[1], x.shape[1], room, layers[0, IN_AT] + i * layers[0, WIDTH]
                )
            _forward(layers, room, size)
            slopes = _matrix(room, top[SLOPE_AT], size, top[OUT_WIDTH])
            out = _matrix(room, top[OUT_AT], size, top[OUT_WIDTH])
            for i in range(size):
                of_batch[i] = labels[order[first + i]] if classes else order[first + i]
            if classes:
                _class_slopes(out, top[OUTPUTS], of_batch[:size], weight, slopes)
            else:
                _square_slopes(out, top[OUTPUTS], targets, of_batch[:size], weight, slopes)
            for number in range(layers.shape[0] - 1, -1, -1):
                layer = layers[number]
                lower = slopes
                if number > 0:
                    below = layers[number - 1]
                    lower = _matrix(room, below[SLOPE_AT], size, below[OUT_WIDTH])
                    _pass_back(layer, room, size, slopes, lower, below[RECTIFIED] != 0)
                begin, end = layer[WEIGHT_AT], layer[BIAS_AT] + layer[OUT_WIDTH]
                if heavy:
                    _add_gradient(layer, room, size, slopes, moving, kept)
                    for j in range(begin, end):
                        if pulled:
                            moving[j] += pull * (room[j] - origin[j])
                        room[j] -= step * moving[j]
                else:
                    if pulled or corrected:
                        for j in range(begin, end):
                            change = pull * (room[j] - origin[j]) if pulled else real(0)
                            room[j] -= change + step * moving[j] if corrected else change
                    _add_gradient(layer, room, size, slopes, room, real(1))
                slopes = lower
            done += 1
        epoch += 1
    _store(room, layers, trained)


@compiled
def train_range(
    x: Array,
    labels: Array,
    targets: Array,
    layers: Array,
    room: Array,
    copy_size: int,
    starts: Array,
    trained: Array,
    paths: Array,
    corrections: Array,
    keys: Array,
    counts: Array,
    numbers: Array,
    first: int,
    last: int,
) -> None:
    """Train tasks `first` to `last`, each from its row of `starts` into its row of `trained`.

    Of task k, `counts[k]` are its place in the four arrays of rows, its first row in x, its number of rows, its batch
    and its steps, `numbers[k]` its learning rate, decay, proximal term and momentum. Without paths, corrections, labels
    or targets, those arrays are empty.
    """
    for k in range(first, last):
        place, begin, size, batch, steps = counts[k]
        lr, decay, prox, momentum = numbers[k]
        end = begin + size
        train_one(
            x[begin:end],
            labels[begin:end] if labels.shape[0] > 0 else labels,
            targets[begin:end] if targets.shape[0] > 0 else targets,
            layers,
            room,
            copy_size,
            starts[place],
            trained[place],
            paths[place if paths.shape[1] > 0 else 0],
            corrections[place if corrections.shape[1] > 0 else 0],
            keys[k],
            batch,
            steps,
            lr,
            decay,
            prox,
            momentum,
        )
