import numpy as np
import pytest

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.table import Table, float_dtype, require_finite


@pytest.mark.parametrize(
    ("targets", "signed"),
    [
        ([0, 1, 0], [-1, 1, -1]),
        ([False, True, True], [-1, 1, 1]),
        ([7.5, 2.0, 7.5], [1, -1, 1]),
        (["no", "yes", "no"], [-1, 1, -1]),
        ([-1, 1, 1], [-1, 1, 1]),
        ([1, 1, 1], [1, 1, 1]),
    ],
)
def test_two_classes_become_minus_and_plus_one(targets, signed):
    table = Table.from_arrays(np.ones((3, 2)), targets, labels=True)
    assert table.y.tolist() == signed
    assert table.labels


def test_labels_are_inferred_only_from_exactly_two_distinct_targets():
    x = np.ones((4, 1))
    assert Table.from_arrays(x, [0, 1, 1, 0]).labels
    assert not Table.from_arrays(x, [0, 1, 2, 0]).labels
    assert not Table.from_arrays(x, [0, 1, 1, 0], labels=False).labels


def test_three_classes_are_refused_with_a_way_out():
    with pytest.raises(DataError, match=r"3 classes \(0, 1, 2\).*exactly 2.*labels=False"):
        Table.from_arrays(np.ones((3, 1)), [0, 1, 2], labels=True)


def test_a_single_class_that_is_not_signed_is_refused():
    with pytest.raises(DataError, match=r"1 classes \(0\)"):
        Table.from_arrays(np.ones((3, 1)), [0, 0, 0], labels=True)


def test_float32_stays_and_integers_become_float64():
    assert Table.from_arrays(np.ones((2, 1), np.float32), [1, 5]).y.dtype == np.float32
    assert Table.from_arrays([[1], [2]], [1, 5]).x.dtype == np.float64


def test_fortran_order_is_made_contiguous_and_refused_when_given_directly():
    x = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    assert Table.from_arrays(x, [1, 2, 3]).x.flags.c_contiguous
    with pytest.raises(DataError, match="ascontiguousarray"):
        Table(x, np.ones(3), labels=False)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_features_name_array_count_row_and_next_step(bad):
    x = np.zeros((5, 2))
    x[3, 1] = x[4, 0] = bad
    with pytest.raises(DataError, match=r"x holds 2 value\(s\).*first in row 3.*Remove or impute"):
        Table.from_arrays(x, np.arange(5))


def test_non_finite_targets_are_named():
    with pytest.raises(DataError, match=r"y holds 1 value\(s\).*first in row 1"):
        Table.from_arrays(np.zeros((3, 1)), [0.0, np.nan, 1.0], labels=True)


def test_the_first_bad_row_is_found_across_blocks(monkeypatch):
    monkeypatch.setattr("asyncfed.data.table.CELLS_AT_ONCE", 4)
    x = np.zeros((7, 2))
    x[5] = np.nan
    with pytest.raises(DataError, match=r"holds 2 value\(s\).*row 5"):
        require_finite(x, "x")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((3, 1)), np.ones(2), "x of the table has 3 rows but y has 2"),
        (np.ones(3), np.ones(3), r"shape \(3,\).*reshape\(-1, 1\)"),
        (np.ones((3, 1)), np.ones((3, 1)), r"y.ravel\(\)"),
        (np.ones((0, 2)), np.ones(0), r"shape \(0, 2\); it needs at least one row"),
        (np.ones((2, 0)), np.ones(2), "at least one row and one feature"),
        ([["a"], ["b"]], [1, 2], "x has dtype <U1, which is not a number.*Encode text"),
        (np.ones((2, 1)) * 1j, [1, 2], "complex128, which is not a number"),
        ([[1], [1, 2]], [1, 2], "x is not an array.*same length"),
        (np.ones((2, 1)), np.array([None, 3], object), "y mixes values"),
    ],
)
def test_unusable_arrays_say_why(x, y, message):
    with pytest.raises(DataError, match=message):
        Table.from_arrays(x, y)


def test_direct_construction_refuses_mixed_dtypes_and_wrong_labels():
    with pytest.raises(DataError, match="float32 and y is float64"):
        Table(np.ones((2, 1), np.float32), np.ones(2), labels=False)
    with pytest.raises(DataError, match=r"holds 0\.0, but labels must be -1 or \+1"):
        Table(np.ones((2, 1)), np.array([0.0, 1.0]), labels=True)


def test_unknown_dtype_is_refused():
    with pytest.raises(ConfigError, match='dtype is "float16"'):
        float_dtype("float16")
