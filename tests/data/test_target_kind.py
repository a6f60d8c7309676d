"""What a target is follows from its values."""

import numpy as np
import pytest

from asyncfed.core.errors import DataError
from asyncfed.data import Column, RawTable, TableFile, kind_of_target

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1, 1, 0], "0/1 numbers"),
        ([-1.0, NAN, 1.0], "0/1 numbers"),
        ([1, 2, 2], "0/1 numbers"),
        ([0, 1, 2], "number"),
        ([0.0, 0.5, 1.0], "number"),
        ([0, 2], "number"),
        ([1, 1], "number"),
        ([NAN, NAN], "number"),
        ([True, False], "two classes"),
        (["a", "b", None], "two classes"),
        (["a", "b", "c"], "several classes"),
        (np.array(["2024-01-01", "2024-01-02"], "datetime64[D]"), "number"),
    ],
)
def test_the_kind_of_a_target(values, kind):
    assert kind_of_target(RawTable.from_columns({"y": values})["y"]) == kind


def test_only_levels_that_occur_count():
    assert kind_of_target(Column("category", np.array([0, 2, -1]), ("a", "b", "c"))) == "two classes"


def test_of_a_file(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,yes\n2,no\n")
    table = TableFile(path=str(tmp_path / "t.csv"), target="y")
    assert table.target_kind() == "two classes"
    assert table.raw() is table.raw()
    with pytest.raises(DataError, match='no column "z"'):
        TableFile(path=str(tmp_path / "t.csv"), target="z").target_kind()
