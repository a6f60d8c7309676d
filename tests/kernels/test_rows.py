"""Kernels read rows as they lie, and never write to them."""

import numpy as np
import pytest

from asyncfed.core.errors import DataError
from asyncfed.kernels.rows import check_rows, frozen


def test_a_frozen_array_is_the_same_memory_and_cannot_be_written():
    array = np.arange(4.0)
    view = frozen(array)
    assert np.shares_memory(view, array)
    assert array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    assert frozen(view) is view


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        (np.zeros((2, 2), int), np.zeros(2), "x has dtype int64"),
        (np.zeros((3, 2)).T, np.zeros(2), "C-contiguous"),
        (np.zeros((2, 2)), np.zeros(3), "y has dtype float64 and shape \\(3,\\)"),
        (np.zeros((2, 2)), np.zeros(2, "f4"), "y has dtype float32"),
    ],
)
def test_what_a_kernel_cannot_read_is_refused(x, y, says):
    with pytest.raises(DataError, match=says):
        check_rows(x, y)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_as_they_should_be_pass(dtype):
    check_rows(np.zeros((3, 2), dtype), np.zeros(3, dtype))
