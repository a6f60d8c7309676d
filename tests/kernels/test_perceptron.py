"""The compiled training of a network equals its readable twin, to the last bit, whatever else is in the call."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.kernels import dense_products
from asyncfed.kernels.perceptron import Layer, Room, Tasks, train_perceptrons
from asyncfed.kernels.perceptron_reference import train_perceptron

WIDTHS = [1, 2, 3, 5, 8, 10, 16, 17, 33, 70, 130]


def layers_of(widths, biases, rectified):
    layers, place = [], 0
    for number, (inputs, outputs) in enumerate(pairwise(widths)):
        size = inputs * outputs
        last = number == len(widths) - 2
        layers.append(Layer(outputs, inputs, place, place + size if biases else None, rectified and not last))
        place += size + (outputs if biases else 0)
    return layers, place


@settings(max_examples=40, deadline=None)  # the first example compiles the kernel
@given(
    widths=st.lists(st.sampled_from(WIDTHS), min_size=2, max_size=4),
    flags=st.tuples(*[st.booleans()] * 4),
    how=st.sampled_from(["plain", "proximal", "momentum", "both", "corrected", "corrected and proximal"]),
    seed=st.integers(0, 2**32),
)
def test_it_equals_its_twin(widths, flags, how, seed):
    biases, rectified, classes, double = flags
    rng, dtype = np.random.default_rng(seed), np.dtype(np.float64 if double else np.float32)
    layers, size = layers_of(widths, biases, rectified)
    counts = rng.integers(1, 30, 3)
    offsets = np.concatenate([[0], counts.cumsum()])
    x = rng.normal(size=(counts.sum(), widths[0])).astype(dtype)
    if classes:
        targets = rng.integers(0, widths[-1], len(x))
    else:
        targets = rng.normal(size=(len(x), widths[-1])).astype(dtype)
    starts = (rng.normal(size=(3, size)) / max(widths) ** 0.5).astype(dtype)
    corrections = (0.1 * rng.normal(size=starts.shape)).astype(dtype) if "corrected" in how else None
    proximal = 0.3 if how in ("proximal", "both", "corrected and proximal") else 0.0
    momentum = 0.9 if how in ("momentum", "both") else 0.0
    batches, steps = np.minimum(rng.integers(1, 12, 3), counts), rng.integers(1, 9, 3)
    tasks = Tasks(
        np.arange(3, dtype=np.uint64) + np.uint64(7),
        np.stack([np.arange(3), offsets[:-1], counts, batches, steps], axis=1),
        np.array([[0.01, 0.5, proximal, momentum]] * 3),
    )
    room, trained, paths = Room(layers, 12, dtype), np.empty_like(starts), np.zeros((3, size + 2))
    train_perceptrons(x, targets, room, starts, trained, paths, corrections, tasks, 0, 3)
    for k in (2, 0, 1):
        alone = np.empty_like(starts)
        train_perceptrons(x, targets, room, starts, alone, None, corrections, tasks, k, k + 1)
        assert alone[k].tobytes() == trained[k].tobytes()
        rows = slice(offsets[k], offsets[k + 1])
        points = train_perceptron(
            *(x[rows], targets[rows], layers, starts[k], k + 7, int(batches[k]), int(steps[k]), 0.01, 0.5),
            proximal=proximal,
            momentum=momentum,
            correction=None if corrections is None else corrections[k],
        )
        assert np.array_equal(trained[k], points[-1])
        gaps = np.array(points[:-1], np.float64) - starts[k].astype(np.float64)
        np.testing.assert_allclose(paths[k, :-2], gaps.sum(0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(paths[k, -2], (gaps**2).sum(), rtol=1e-9)
        assert paths[k, -1] == steps[k]
    over = starts.copy()
    train_perceptrons(x, targets, room, over, over, None, corrections, tasks, 0, 3)
    assert over.tobytes() == trained.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neither_place_nor_tile_matters(dtype):
    """Products of matrices that begin anywhere in memory, in tiles of every size and one number after another."""
    rng, lanes = np.random.default_rng(0), 64 // np.dtype(dtype).itemsize
    for rows, outputs, blocks in [(1, 4, 1), (7, 12, 3), (70, 8, 9)]:
        width = blocks * lanes
        x, w = rng.normal(size=(rows, width)).astype(dtype), rng.normal(size=(outputs, width)).astype(dtype)
        expected, added = np.empty((rows, outputs), dtype), None
        dense_products.row_products(x, rows, w, expected)
        np.testing.assert_allclose(expected, x @ w.T, rtol=1e-4, atol=1e-4)
        for shift in (1, 3, lanes // 2):
            memory = np.zeros(x.size + shift, dtype)
            moved = memory[shift:].reshape(x.shape)
            moved[:] = x
            again, single = np.empty_like(expected), np.empty_like(expected)
            dense_products.row_products(moved, rows, w, again)
            for i in range(rows):
                one = np.empty((1, outputs), dtype)
                dense_products.row_products(moved[i : i + 1], 1, w, one)
                single[i] = one
            assert again.tobytes() == single.tobytes() == expected.tobytes()
            weights, c = np.ascontiguousarray(expected).reshape(-1), w.copy()
            dense_products.add_weighted_rows(weights, rows, outputs, 1, moved, c, outputs, c.dtype.type(0.5))
            added = c if added is None else added
            assert c.tobytes() == added.tobytes()
            by_row = w.copy()
            for j in range(outputs):
                own = by_row[j : j + 1].copy()
                dense_products.add_weighted_rows(weights[j:], rows, outputs, 1, moved, own, 1, c.dtype.type(0.5))
                by_row[j] = own[0]
            assert by_row.tobytes() == c.tobytes()
        np.testing.assert_allclose(added, 0.5 * w + expected.T @ x, rtol=1e-3, atol=1e-3)
