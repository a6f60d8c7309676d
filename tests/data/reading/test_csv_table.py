"""CSV files of any size, encoding and compression become the same columns; a large one is never held as text."""

import bz2
import gzip

import numpy as np
import pytest

from asyncfed.core.errors import DataError
from asyncfed.data.raw_table import MISSING
from asyncfed.data.reading import csv_table
from asyncfed.data.reading.progress import watch_reading
from asyncfed.data.table_reader import read_table

LINES = ["n;t;c", "1,5;2024-01-01T00:00+01:00;x", "-2;2024-01-02T00:00+01:00;y", "NA;;x"]


def read(path, content, **how):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(str(path), how.get("missing", MISSING), how.get("categories", ()))


@pytest.fixture
def csv(tmp_path):
    return tmp_path / "t.csv"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_and_decimal_commas(csv, encoding):
    table = read(csv, "\n".join(LINES).replace("x", "grün").encode(encoding))
    np.testing.assert_array_equal(table["n"].values, [1.5, -2.0, np.nan])
    assert table["c"].levels == ("grün", "y")
    assert ("the file is UTF-16" in table.notes) == (encoding == "utf-16")
    assert "decimal commas were read as such: n" in table.notes
    assert "times with a time zone are counted in UTC: t" in table.notes


def test_compressed_files_say_the_same(tmp_path):
    import pyarrow

    text = ("a,b\n" + "1.25,x\n2,y\n" * 3).encode()
    packed = pyarrow.compress(text, "zstd", asbytes=True)
    for ending, content in ((".csv", text), (".csv.gz", gzip.compress(text)), (".tsv.bz2", bz2.compress(text)),
                            (".txt.zst", packed)):  # fmt: skip
        table = read(tmp_path / f"t{ending}", content)
        assert table["a"].values.tolist() == [1.25, 2.0] * 3
        assert table["b"].levels == ("x", "y")


@pytest.mark.parametrize(
    ("late", "kind"), [("NA", "number"), ("inf", "refused"), ("x", "refused"), ("-nan", "refused"), ("1e3", "number")]
)
def test_what_comes_late_in_a_file_counts(csv, monkeypatch, late, kind):
    monkeypatch.setattr(csv_table, "BLOCK", 512)
    lines = ["n,m,c", *(f"{i},{i if i < 300 else 'word'},{'ab'[i % 2]}" for i in range(700)), f"{late},1,c"]
    if kind == "refused":
        with pytest.raises(DataError, match=rf'Column "n" holds numbers, but in row 702 it says "{late}"'):
            read(csv, "\n".join(lines))
    else:
        table = read(csv, "\n".join(lines))
        assert [column.kind for column in table.columns.values()] == ["number", "category", "category"]
        assert table["n"].values[:700].tolist() == list(range(700))
        assert len(table["m"].levels) == 301
        assert table["c"].levels == ("a", "b", "c")


def test_many_columns_that_change_their_mind(csv, monkeypatch):
    monkeypatch.setattr(csv_table, "BLOCK", 512)
    names = "abcdefgh"
    lines = [",".join(names), *[",".join("1" * 8)] * 200, *[",".join("wxyzwxyz")] * 300]
    assert {column.kind for column in read(csv, "\n".join(lines)).columns.values()} == {"category"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a,b\n1,"x\n2,y\n3,z\n', r'quotation mark in line 2 that is not closed: 1,"x'),
        ('a,b\n1,x\n2,"y\n' + "3,z\n" * 400, r"quotation mark in line 3 that is not closed"),
        ("a,b\n1,x\n\n2,y,z\n", r"has 2 columns, but row 4 has 3 values"),
        ("a,b\n1\n", r"has 2 columns, but row 2 has 1 values"),
        (b"a,b\n1,x\n2,gr\xfcn\n", r"t\.csv is not UTF-8: byte 12 of it is 0xfc\. Save it.*iconv -f latin1"),
        ("a,b\n1,x\n".encode("utf-16-le"), r"begins with zero bytes, as UTF-16 without its mark does"),
        (b"\xff\xfea\x00\x00\xd8b", r"begins as UTF-16, but is not"),
        (b"gr\xfcn,b\n1,2\n", r"not UTF-8: byte 2 of it is 0xfc"),
        ("a,b,a\n1,2,3\n", r'more than one column "a"'),
        ("\n\n", r"t\.csv is empty"),
        ("a,b\n", r"t\.csv has no rows"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(csv, monkeypatch, text, words):
    monkeypatch.setattr(csv_table, "BLOCK", 512)
    with pytest.raises(DataError, match=words) as refused:
        read(csv, text)
    assert "\n" not in str(refused.value)


def test_quotation_marks_within_a_text_are_no_fault(csv):
    assert read(csv, 'a,b\n5" pipe,1\n"6"" pipe",2\n')["a"].levels == ('5" pipe', '6" pipe')


def test_the_index_of_a_data_frame_is_left_out(csv):
    table = read(csv, ",a,b\n0,1,x\n1,2,y\n")
    assert list(table.columns) == ["a", "b"]
    assert "the first column has no name (the index of a data frame?) and is left out" in table.notes


def test_thousands(csv):
    table = read(csv, 'a,b\n"1,234.5",x\n"2,000,000",y\n')
    assert table["a"].values.tolist() == [1234.5, 2e6]
    assert "commas between thousands were taken out: a" in table.notes


def test_whoever_watches_is_told_from_the_beginning(csv, monkeypatch):
    monkeypatch.setattr(csv_table, "BLOCK", 512)
    told = []
    with watch_reading(lambda *now: told.append(now)):
        read(csv, "a,b\n" + "1,2\n" * 1000)
    size = csv.stat().st_size
    assert told[0] == (str(csv), 0, size)
    assert told[-1] == (str(csv), size, size)
    assert len(told) > 5
    read(csv, "a,b\n" + "1,2\n" * 1001)
    assert told[-1][2] == size


def test_a_header_longer_than_a_block(csv, monkeypatch):
    monkeypatch.setattr(csv_table, "BLOCK", 64)
    names = [f"column number {i}" for i in range(50)]
    table = read(csv, "\n".join([",".join(names), ",".join("1" * 50), ",".join("2" * 50)]))
    assert list(table.columns) == names
