"""The compiled softmax SGD and losses against their readable twins, and against themselves on more threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels import reference
from asyncfed.kernels.softmax import SoftmaxSgd, softmax_client_losses
from asyncfed.kernels.softmax_losses import class_probabilities, softmax_slopes, softmax_values
from asyncfed.kernels.tasks import Tasks


def rows_of(seed, rows, d, classes, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(rows, d)).astype(dtype), rng.integers(0, classes, rows).astype(dtype)
    return x, y, rng


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 30),
    d=st.integers(1, 7),
    classes=st.integers(2, 6),
    key=st.integers(0, 2**64 - 1),
    epochs=st.integers(1, 3),
    batch=st.integers(1, 40),
    lr=st.floats(1e-3, 0.5),
    decay=st.sampled_from([0.0, 0.5]),
    prox=st.sampled_from([0.0, 0.3]),
    l2=st.sampled_from([0.0, 0.2]),
    penalize_bias=st.booleans(),
    fit_bias=st.booleans(),
    patience=st.sampled_from([0, 1]),
    steps=st.sampled_from([0, 1, 5]),
    corrected=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_training_and_its_path_are_those_of_the_twin(
    seed, rows, d, classes, key, epochs, batch, lr, decay, prox, l2, penalize_bias, fit_bias, patience, steps, corrected
):
    x, y, rng = rows_of(seed, rows, d, classes)
    start = rng.normal(size=(1, classes * (d + fit_bias)))
    correction = rng.normal(size=start.shape) if corrected else None
    kernel = SoftmaxSgd(x, y, np.array([0, rows]), classes, l2, penalize_bias, fit_bias)
    work = np.array([[epochs, batch, lr, decay, prox, patience, steps]], dtype=np.float64)
    tasks = Tasks(np.array([0]), np.array([key], np.uint64), work)
    how = {"epochs": epochs, "batch": batch, "lr": lr, "decay": decay, "prox": prox, "patience": patience}
    how |= {"steps": steps, "num_classes": classes, "l2": l2, "penalize_bias": penalize_bias, "fit_bias": fit_bias}
    how["correction"] = None if correction is None else correction[0]
    done = np.zeros(1, np.int64)
    trained = kernel.train(start, tasks, corrections=correction, steps_done=done)[0]
    path = reference.train_path(x, y, start[0], key, **how)
    np.testing.assert_allclose(trained, path[-1], rtol=1e-9, atol=1e-11)
    assert done[0] == len(path) - 1
    counted, sums, squares = kernel.path_moments(start, tasks, corrections=correction)
    slow = reference.path_moments(x, y, start[0], key, **how)
    assert counted[0] == slow[0]
    np.testing.assert_allclose(sums[0], slow[1], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(squares[0], slow[2], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_bias", [False, True])
def test_losses_are_those_of_the_twin(dtype, fit_bias):
    x, y, rng = rows_of(1, 50, 6, 5, dtype)
    offsets, params = np.array([0, 20, 20, 50]), rng.normal(size=5 * (6 + fit_bias)).astype(dtype)
    sums, correct = softmax_client_losses(x, y, offsets, params, 5, fit_bias)
    slow_sums, slow_correct = reference.softmax_client_losses(x, y, offsets, params, 5, fit_bias)
    np.testing.assert_allclose(sums, slow_sums, rtol=1e-5 if dtype == np.float32 else 1e-12)
    assert correct.tolist() == slow_correct.tolist()


def test_no_bit_depends_on_the_number_of_threads():
    x, y, rng = rows_of(2, 4000, 30, 9)
    offsets = np.array([0, 700, 1500, 4000])
    kernel = SoftmaxSgd(x, y, offsets, 9, 0.1, False, True)
    tasks = Tasks(np.array([0, 1, 2, 2]), np.arange(4, dtype=np.uint64), np.tile([3, 32, 0.1, 0.5, 0.0], (4, 1)))
    start = rng.normal(size=(4, 9 * 31))
    assert np.array_equal(kernel.train(start, tasks), kernel.train(start, tasks, threads=3))
    one, more = (softmax_client_losses(x, y, offsets, start[0], 9, True, threads) for threads in (1, 3))
    assert np.array_equal(one[0], more[0])
    assert np.array_equal(one[1], more[1])


def test_equal_margins_decide_nothing_and_a_nan_gives_no_good_loss():
    x, y = np.ones((2, 1)), np.array([0.0, 1.0])
    _, correct = softmax_client_losses(x, y, np.array([0, 2]), np.zeros(2), 2, False)
    assert correct[0] == 0
    sums, correct = softmax_client_losses(x, y, np.array([0, 2]), np.array([0.0, np.nan]), 2, False)
    assert np.isnan(sums[0])
    assert correct[0] == 0


def test_large_margins_overflow_nothing():
    margins = np.array([[1e4, -1e4], [-1e4, 1e4]])
    labels = np.array([0, 0])
    assert softmax_values(margins, labels).tolist() == [0.0, 2e4]
    assert softmax_slopes(margins, labels).tolist() == [[0.0, 0.0], [-1.0, 1.0]]
    assert class_probabilities(margins).sum(axis=1).tolist() == [1.0, 1.0]


def test_wrong_classes_tasks_and_params_are_refused():
    x, offsets = np.ones((2, 1)), np.array([0, 2])
    for wrong in ([0.0, 2.0], [-1.0, 1.0], [0.5, 1.0], [np.nan, 0.0]):
        with pytest.raises(DataError, match="whole numbers from 0 to 1"):
            SoftmaxSgd(x, np.array(wrong), offsets, 2, 0.0, True, True)
    with pytest.raises(DataError, match="at least 2"):
        SoftmaxSgd(x, np.zeros(2), offsets, 1, 0.0, True, True)
    with pytest.raises(DataError, match="2 classes need 4 numbers"):
        softmax_client_losses(x, np.zeros(2), offsets, np.zeros(3), 2, True)
    kernel = SoftmaxSgd(x, np.zeros(2), offsets, 2, 0.0, True, True)
    tasks = Tasks(np.array([1]), np.zeros(1, np.uint64), np.array([[1.0, 1, 0.1, 0, 0]]))
    with pytest.raises(ConfigError, match="clients are 0 … 0"):
        kernel.train(np.zeros((1, 4)), tasks)
