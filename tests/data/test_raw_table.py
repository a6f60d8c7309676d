"""Columns of arrays and lists: their kinds, their missing values, and what is refused."""

import datetime

import numpy as np
import pytest

from asyncfed.core.errors import DataError
from asyncfed.data import RawTable
from asyncfed.data.raw_table import Column


def test_the_kind_of_a_column_follows_from_its_values():
    table = RawTable.from_columns(
        {
            "number": [1, None, 2.5],
            "boolean": np.array([True, False, True]),
            "date": [datetime.date(1970, 1, 2), None, datetime.date(1970, 1, 4)],
            "category": ["x", None, "w"],
        }
    )
    assert {name: column.kind for name, column in table.columns.items()} == {
        "number": "number",
        "boolean": "boolean",
        "date": "date",
        "category": "category",
    }
    np.testing.assert_array_equal(table["date"].values, [1.0, np.nan, 3.0])
    assert table["category"].levels == ("w", "x")
    assert table["category"].values.tolist() == [1, -1, 0]


def test_rows_are_taken_in_the_order_given():
    table = RawTable.from_columns({"a": [10, 20, 30], "b": ["x", "y", "x"]}).take(np.array([2, 0]))
    assert table.num_rows == 2
    assert table["a"].values.tolist() == [30.0, 10.0]
    assert table["b"].levels == ("x", "y")


def test_numbers_become_names_as_they_are_written():
    column = Column("number", np.array([2.0, np.nan, 0.1])).as_category()
    assert (column.levels, column.values.tolist()) == (("0.1", "2"), [1, -1, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RawTable.from_columns({"a": [[1, 2], [3, 4]]}), r'Column "a" has shape \(2, 2\)'),
        (lambda: RawTable.from_columns({"a": [1.0, np.inf]}), r'Column "a" is infinite in row 3'),
        (
            lambda: RawTable.from_columns({"a": np.array(["x", 1], dtype=object)}),
            r'Column "a" mixes values of the types int, str',
        ),
        (lambda: RawTable.from_columns({"price": [1]}).require(["prise"], "a feature"), r'Did you mean "price"'),
    ],
)
def test_what_is_no_column_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()
