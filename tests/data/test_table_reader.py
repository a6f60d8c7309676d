"""Files become columns of the right kinds, and CSV and Parquet say the same."""

import datetime

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.raw_table import MISSING, RawTable
from asyncfed.data.table_reader import read_table


def read(path, text, missing=MISSING, categories=()):
    path.write_text(text, encoding="utf-8")
    return read_table(str(path), missing, categories)


@pytest.fixture
def csv(tmp_path):
    return tmp_path / "table.csv"


def test_kinds_follow_from_the_values(csv):
    table = read(csv, "n,b,d,c,z\n1,true,2013-01-02,x,NA\n2.5,False,1970-01-01T12:00,y,\nNA,,,?,NA\n")
    assert [column.kind for column in table.columns.values()] == ["number", "boolean", "date", "category", "number"]
    np.testing.assert_array_equal(table["n"].values, [1.0, 2.5, np.nan])
    np.testing.assert_array_equal(table["b"].values, [1.0, 0.0, np.nan])
    np.testing.assert_array_equal(table["d"].values, [15707.0, 0.5, np.nan])
    assert table["c"].values.tolist() == [0, 1, -1]
    assert table["z"].missing.all()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found(csv, delimiter):
    table = read(csv, f"a{delimiter}b\n1{delimiter}x\n2{delimiter}y\n")
    assert table["b"].levels == ("x", "y")


def test_quotes_a_mark_at_the_start_and_empty_lines_are_understood(csv):
    table = read(csv, '\ufeffa,b\n1,"x, or\ny"\n\n2,z\n')
    assert list(table.columns) == ["a", "b"]
    assert table["b"].levels == ("x, or\ny", "z")


def test_codes_can_be_declared_categories_and_marks_missing(csv):
    table = read(csv, "code,n\n007,1\n12,-99\n007,3\n", missing=("-99",), categories=("code",))
    assert table["code"].levels == ("007", "12")
    assert table["n"].missing.tolist() == [False, True, False]


def test_a_changed_file_is_read_again(csv):
    assert read(csv, "a,b\n1,2\n3,4\n").num_rows == 2
    assert read(csv, "a,b\n1,2\n3,4\n5,6\n").num_rows == 3


def test_parquet_says_what_csv_says(csv, tmp_path):
    from_csv = read(csv, "n,b,d,c\n1,true,2013-01-02,x\n,,,\n2.5,false,1970-01-01,y\n")
    day = datetime.date
    columns = {"n": [1.0, None, 2.5], "b": [True, None, False], "d": [day(2013, 1, 2), None, day(1970, 1, 1)]}
    dictionary = pyarrow.array(["x", None, "y"]).dictionary_encode()
    path = tmp_path / "table.parquet"
    pyarrow.parquet.write_table(pyarrow.table({**columns, "c": dictionary}), path)
    from_parquet = read_table(str(path), MISSING, ())
    for name, column in from_csv.columns.items():
        assert column.kind == from_parquet[name].kind, name
        np.testing.assert_array_equal(column.values, from_parquet[name].values)
        assert column.levels == from_parquet[name].levels


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(ConfigError, match=r'ends in ".xlsx"; a table is read from .csv or .parquet'):
        read_table(str(tmp_path / "a.xlsx"), MISSING, ())
    (tmp_path / "a.parquet").write_text("x")
    with pytest.raises(DataError, match="is not a Parquet file"):
        read_table(str(tmp_path / "a.parquet"), MISSING, ())


def test_columns_of_mixed_values_are_refused():
    with pytest.raises(DataError, match='"a" mixes values of the types int, str'):
        RawTable.from_columns({"a": np.array([1, "x"], dtype=object)})
    with pytest.raises(DataError, match='"a" is infinite in row 3'):
        RawTable.from_columns({"a": [1.0, np.inf]})
