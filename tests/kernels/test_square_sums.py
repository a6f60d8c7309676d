"""Sums of squares in their one order, and the copy that is measured while it is made."""

import threading

import numpy as np
import pytest

from asyncfed.kernels import reference, square_sums
from asyncfed.store.page_sums import PAGE_WORDS, combine_sums, page_sum

DTYPES = [np.float32, np.float64]
SIZES = [0, 1, 31, 32, 33, 511, 512, 1024, 1025, 5000, 70_001]


def vectors(size, dtype):
    return np.random.default_rng(size).normal(size=(2, size)).astype(dtype)


def words(array):
    pages = array.nbytes // (8 * PAGE_WORDS)
    return array.view(np.uint8)[: pages * 8 * PAGE_WORDS].view(np.uint64)


def copy_and_measure(source, start):
    copy, sums = np.empty_like(source), np.empty(words(source).size // PAGE_WORDS, np.uint64)
    square = square_sums.copy_and_measure(source, words(source), copy, words(copy), start, sums)
    return copy, square, combine_sums(sums, copy.data.cast("B"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_squares_are_added_in_the_order_of_the_twin(dtype, size):
    one, other = vectors(size, dtype)
    assert square_sums.square_distance(one, other) == reference.square_distance(one, other)
    assert square_sums.square_distance(one, other) == pytest.approx(((one.astype(float) - other) ** 2).sum())
    assert square_sums.square_norm(one) == reference.square_distance(one, np.zeros_like(one))


def test_the_square_distance_of_what_is_not_finite_is_not_finite():
    one = np.ones(300, np.float32)
    for wrong in (np.nan, np.inf, 3e38):
        other = one.copy()
        other[299] = wrong
        assert not np.isfinite(square_sums.square_distance(one, other)) or wrong == 3e38


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES[1:])
def test_a_copy_is_measured_as_if_it_were_read_again(dtype, size):
    source, start = vectors(size, dtype)
    copy, square, check_sum = copy_and_measure(source, start)
    assert copy.tobytes() == source.tobytes()
    assert square == reference.square_distance(copy, start)
    assert check_sum == page_sum(copy.data.cast("B"))


def test_a_page_is_as_long_here_as_in_the_check_sum():
    assert square_sums.PAGE_WORDS == PAGE_WORDS


def test_what_is_measured_is_the_copy_also_if_somebody_changes_the_source_meanwhile():
    source, start = vectors(400_000, np.float32)
    copy_and_measure(source, start)  # compiled
    done = threading.Event()

    def scribble():
        value = 0
        while not done.is_set():
            value += 1
            source[:] = value % 7

    thread = threading.Thread(target=scribble)
    thread.start()
    mixed = 0
    try:
        for _ in range(60):
            copy, square, check_sum = copy_and_measure(source, start)
            mixed += len(np.unique(copy)) > 1
            assert square == reference.square_distance(copy, start)
            assert check_sum == page_sum(copy.data.cast("B"))
    finally:
        done.set()
        thread.join()
    assert mixed  # else the test has shown nothing
