"""Folders of files: CSV or Parquet, the names of folders being values."""

import pyarrow
import pyarrow.parquet
import pytest

from asyncfed.core.errors import DataError
from asyncfed.data.raw_table import MISSING
from asyncfed.data.table_reader import read_table


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_parquet(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def read(folder):
    return read_table(str(folder), MISSING, ())


def owners(column):
    return [column.levels[code] if code >= 0 else None for code in column.values]


def test_a_folder_of_csv_files(tmp_path):
    write(tmp_path / "site=A" / "part.csv", "x,y\n1,red\n2,\n")
    write(tmp_path / "site=B%20b" / "part-1.csv", "y,x\nblue,3\n")
    write(tmp_path / "_SUCCESS", "")
    write(tmp_path / ".part.csv.crc", "?")
    table = read(tmp_path)
    assert list(table.columns) == ["x", "y", "site"]
    assert table["x"].values.tolist() == [1.0, 2.0, 3.0]
    assert owners(table["y"]) == ["red", None, "blue"]
    assert owners(table["site"]) == ["A", "A", "B b"]


def test_a_partitioned_folder_of_parquet_files(tmp_path):
    write_parquet(tmp_path / "site=1" / "part.parquet", x=[1.0, 2.0], y=["a", None], d=pyarrow.nulls(2))
    write_parquet(tmp_path / "site=2" / "part.parquet", x=pyarrow.array([3, None], pyarrow.int32()), y=["b", ""],
                  d=[1.0, None])  # fmt: skip
    table = read(tmp_path)
    assert table["x"].values[:3].tolist() == [1.0, 2.0, 3.0]
    assert owners(table["y"]) == ["a", None, "b", None]
    assert table["site"].values.tolist() == [1.0, 1.0, 2.0, 2.0]
    assert table["d"].missing.tolist() == [True, True, False, True]


def test_times_of_parquet(tmp_path):
    zone = pyarrow.timestamp("ms", "Europe/Berlin")
    write_parquet(tmp_path / "t.parquet", t=pyarrow.array([0, 43_200_000], zone), x=[1.0, 2.0])
    table = read(tmp_path / "t.parquet")
    assert table["t"].values.tolist() == [0.0, 0.5]
    assert table.notes == ("times with a time zone are counted in UTC: t",)


def test_a_changed_file_of_a_folder_is_read_again(tmp_path):
    write(tmp_path / "a.csv", "x,y\n1,2\n")
    assert read(tmp_path).num_rows == 1
    write(tmp_path / "b.csv", "x,y\n1,2\n")
    assert read(tmp_path).num_rows == 2


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, r"holds no \.csv or \.parquet file"),
        ({"a.csv": "x,y\n1,2\n", "b.csv": "x,z\n1,2\n"}, r'do not have the same columns: only one of them has "y"'),
        ({"a.csv": "x,y\n1,2\n", "b.parquet": ""}, r"holds both CSV and Parquet"),
        ({"x=1/a.csv": "x,y\n1,2\n"}, r'"x" is named by the folder of .* and is a column of it too'),
    ],
)
def test_a_folder_that_is_no_table(tmp_path, files, words):
    (tmp_path / "folder").mkdir()
    for name, text in files.items():
        write(tmp_path / "folder" / name, text)
    with pytest.raises(DataError, match=words):
        read(tmp_path / "folder")


def test_parquet_files_that_do_not_agree(tmp_path):
    write_parquet(tmp_path / "a.parquet", x=[1.0])
    write_parquet(tmp_path / "b.parquet", x=["1"])
    with pytest.raises(DataError, match=r'Column "x" is a number in .*, but a text in'):
        read(tmp_path)
    write_parquet(tmp_path / "b.parquet", z=[1.0])
    with pytest.raises(DataError, match=r'only one of them has "x"'):
        read(tmp_path)
    write_parquet(tmp_path / "c" / "c.parquet", x=[[1.0]])
    with pytest.raises(DataError, match=r"is of type list"):
        read(tmp_path / "c")
