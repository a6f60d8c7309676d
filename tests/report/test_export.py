"""Tables in files."""

from pathlib import Path

import pyarrow.parquet
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.report.export import write_table

COLUMNS = {"round": [1, 2], "loss": [0.5, 0.25]}


def test_csv(tmp_path):
    path = tmp_path / "new" / "table.csv"
    write_table(COLUMNS, path)
    assert path.read_text().splitlines() == ["round,loss", "1,0.5", "2,0.25"]


def test_parquet(tmp_path):
    write_table(COLUMNS, tmp_path / "table.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pydict() == COLUMNS


@pytest.mark.parametrize(
    ("name", "words"), [("table.xlsx", 'ends in ".xlsx"'), ("file/table.csv", "cannot be written")]
)
def test_what_cannot_be_written_is_named(tmp_path, name, words):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=words):
        write_table(COLUMNS, tmp_path / Path(name))
