"""A table of trainings that several threads take from: the bits of training them one by one, whoever does what."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from asyncfed.kernels.claimed_training import TrainingTable
from asyncfed.kernels.perceptron import Layer, Room, Tasks, train_perceptrons

LAYERS = [Layer(17, 33, 0, 561, True), Layer(5, 17, 578, 663, False)]
SIZE = 668
COUNT = 40


def trainings(dtype, classes):
    """Rows, targets, and `COUNT` trainings of unequal length with what each arrives at alone."""
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 30, COUNT)
    firsts = np.concatenate([[0], counts.cumsum()[:-1]])
    x = rng.normal(size=(counts.sum(), 33)).astype(dtype)
    targets = rng.integers(0, 5, len(x)) if classes else rng.normal(size=(len(x), 5)).astype(dtype)
    starts = (0.2 * rng.normal(size=(COUNT, SIZE))).astype(dtype)
    keys = rng.integers(0, 2**64, COUNT, dtype=np.uint64)
    lines = np.stack([np.arange(COUNT), firsts, counts, np.minimum(counts, 8), rng.integers(1, 9, COUNT)], axis=1)
    numbers = np.array([(0.05, 0.5, 0.1 * (k % 2), 0.5 * (k % 3 == 0)) for k in range(COUNT)])
    expected = np.empty_like(starts)
    room = Room(LAYERS, 8, x.dtype)
    train_perceptrons(x, targets, room, starts, expected, None, None, Tasks(keys, lines, numbers), 0, COUNT)
    return x, targets, starts, keys, lines, numbers, expected


def add(table, line, k, starts, keys, lines, numbers):
    words = (int(keys[k]), *(int(value) for value in lines[k][1:]))
    return table.add(line, starts[k], np.empty_like(starts[k]), words, tuple(numbers[k]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_whoever_trains_a_line_the_bits_are_the_same(dtype, classes, helpers):
    x, targets, *tasks, expected = trainings(dtype, classes)
    table, mine = TrainingTable(x, targets, SIZE, 8, 8), Room(LAYERS, 8, x.dtype)
    with ThreadPoolExecutor(helpers or 1) as pool:
        for first in range(0, COUNT, 8):  # lines are used again and again
            for k in range(first, first + 8):
                add(table, k % 8, k, *tasks)
            others = [pool.submit(table.train_waiting, Room(LAYERS, 8, x.dtype)) for _ in range(helpers)]
            for k in reversed(range(first, first + 8)):  # not in the order in which they were added
                while not table.is_finished(k % 8):
                    table.train_until(mine, k % 8)
                assert table.take(k % 8).tobytes() == expected[k].tobytes()
            for other in others:
                other.result()


def test_a_line_that_is_withdrawn_is_trained_by_nobody():
    x, targets, *tasks, expected = trainings(np.float32, True)
    table, room = TrainingTable(x, targets, SIZE, 4, 8), Room(LAYERS, 8, x.dtype)
    untouched = np.full_like(tasks[0][0], np.nan)
    keys, lines, numbers = tasks[1:]
    words = (int(keys[0]), *(int(value) for value in lines[0][1:]))
    table.add(0, tasks[0][0], untouched, words, tuple(numbers[0]))
    add(table, 1, 1, *tasks)
    assert table.withdraw(0)
    assert not table.is_finished(0)
    table.train_waiting(room)
    assert np.isnan(untouched).all()
    assert table.withdraw(1), "it is finished"
    assert table.take(1).tobytes() == expected[1].tobytes()


def test_it_is_known_whether_anybody_looks_for_work():
    x, targets, *tasks, _ = trainings(np.float32, True)
    table, room = TrainingTable(x, targets, SIZE, 4, 8), Room(LAYERS, 8, x.dtype)
    assert add(table, 0, 0, *tasks) == 0
    table.train_waiting(room)
    assert add(table, 1, 1, *tasks) == 0, "the thread has given up"
    assert not table.is_finished(1)
    table.train_waiting(room)
    assert table.is_finished(1)
