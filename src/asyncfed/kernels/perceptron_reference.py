"""What `kernels/perceptron.py` computes, written to be read: NumPy, one product of numbers after another, slow.

The compiled kernel equals it to the last bit, so its sums are made in the same order (`dense_products.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.dense_products import DENSE_BYTES
from asyncfed.kernels.perceptron import Layer
from asyncfed.kernels.row_orders import epoch_orders
from asyncfed.kernels.vector_code import GROUP, exponentials, fused_multiply_add

Array = NDArray[Any]


def train_perceptron(
    x: Array,
    targets: Array,
    layers: Sequence[Layer],
    start: Array,
    key: int,
    batch: int,
    steps: int,
    learning_rate: float,
    decay: float = 0.0,
    proximal: float = 0.0,
    momentum: float = 0.0,
    correction: Array | None = None,
) -> list[Array]:
    """The params before each step of one client's training, and after the last."""
    real, params = start.dtype.type, start.copy()
    batch = min(batch, len(x))
    per_epoch = -(-len(x) // batch)
    orders = epoch_orders(key, len(x), -(-steps // per_epoch))
    velocity, points = np.zeros_like(params), [params.copy()]
    for step in range(steps):
        epoch, number = divmod(step, per_epoch)
        rows = orders[epoch][number * batch : (number + 1) * batch]
        rate = learning_rate / (epoch + 1.0) ** decay
        weight = real(1.0 / len(rows)) if momentum else real(-rate / len(rows))
        inputs = [x[rows]]
        for layer in layers:
            inputs.append(_forward(inputs[-1], layer, params))
        slopes = _slopes(inputs.pop(), targets[rows], weight)
        changes = []
        for layer, below in zip(reversed(layers), reversed(inputs), strict=True):
            changes.append((layer, slopes, below))
            slopes = _weighted_rows(slopes, _weights(layer, params), np.zeros_like(below))
            slopes = np.where(below <= 0, real(0), slopes) if layer is not layers[0] and _cut(layers, layer) else slopes
        if momentum:
            for layer, slopes, below in changes:
                _add_gradient(velocity, layer, slopes, below, real(momentum))
            if proximal:
                velocity += real(proximal) * (params - start)
            params -= real(rate) * velocity
        else:
            if proximal or correction is not None:
                pull = real(proximal * rate) * (params - start) if proximal else np.zeros_like(params)
                params -= pull if correction is None else pull + real(rate) * correction
            for layer, slopes, below in changes:
                _add_gradient(params, layer, slopes, below, real(1))
        points.append(params.copy())
    return points


def _weights(layer: Layer, params: Array) -> Array:
    return params[layer.weight : layer.weight + layer.outputs * layer.inputs].reshape(layer.outputs, layer.inputs)


def _cut(layers: Sequence[Layer], layer: Layer) -> bool:
    """Whether a rectifier comes before this layer."""
    return layers[list(layers).index(layer) - 1].rectified


def _forward(below: Array, layer: Layer, params: Array) -> Array:
    out = _row_products(below, _weights(layer, params))
    bias = np.zeros(layer.outputs, params.dtype)
    if layer.bias is not None:
        bias = params[layer.bias : layer.bias + layer.outputs]
    out = out + bias
    return np.where(out <= 0, out.dtype.type(0), out) if layer.rectified else out


def _slopes(out: Array, targets: Array, weight: Any) -> Array:
    real, outputs = out.dtype.type, out.shape[1]
    if targets.ndim == 2:
        errors: Array = (out - targets) * real(2.0 / outputs) * weight
        return errors
    shifted = np.ascontiguousarray(out - out.max(axis=1)[:, None])
    powers = np.empty_like(shifted)
    exponentials(shifted.reshape(-1), powers.reshape(-1))
    total = np.zeros(len(out), out.dtype)
    for k in range(outputs):
        total += powers[:, k]
    slopes: Array = powers / total[:, None]
    slopes[np.arange(len(out)), targets] -= real(1)
    slopes *= weight
    return slopes


def _row_products(x: Array, w: Array) -> Array:
    """x[i] · w[j]: lane by lane, then the lanes."""
    lanes = DENSE_BYTES // x.itemsize
    x, w = _filled_up(x, lanes), _filled_up(w, lanes)
    sums = np.zeros((len(x), len(w), lanes), x.dtype)
    for k in range(0, x.shape[1], lanes):
        sums = _fma(x[:, None, k : k + lanes], w[None, :, k : k + lanes], sums)
    while lanes > GROUP:
        lanes //= 2
        sums = sums[..., :lanes] + sums[..., lanes:]
    products: Array = (sums[..., 0] + sums[..., 1]) + (sums[..., 2] + sums[..., 3])
    return products


def _weighted_rows(weights: Array, rows: Array, total: Array) -> Array:
    """total[i] + Σ_r weights[i, r] · rows[r], row by row."""
    for r, row in enumerate(rows):
        total = _fma(weights[:, r][:, None], row[None], total)
    return total


def _add_gradient(into: Array, layer: Layer, slopes: Array, below: Array, keep: Any) -> None:
    weights = _weights(layer, into)
    weights[:] = _weighted_rows(slopes.T, below, keep * weights)
    if layer.bias is not None:
        bias = into[layer.bias : layer.bias + layer.outputs]
        bias *= keep
        for row in slopes:
            bias += row


def _fma(a: Array, b: Array, c: Array) -> Array:
    result = np.empty_like(c)
    a, b = (np.ascontiguousarray(np.broadcast_to(some, c.shape)) for some in (a, b))
    fused_multiply_add(a.reshape(-1), b.reshape(-1), np.ascontiguousarray(c).reshape(-1), result.reshape(-1))
    return result


def _filled_up(rows: Array, lanes: int) -> Array:
    width = -(-rows.shape[1] // lanes) * lanes
    filled = np.zeros((len(rows), width), rows.dtype)
    filled[:, : rows.shape[1]] = rows
    return filled
