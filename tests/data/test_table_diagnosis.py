"""What is odd about a table is found and said, in one sentence each."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data import DataRequest, RawTable, TableFile, TableSchema
from asyncfed.data.table_diagnosis import diagnose

ROWS = 40
RNG = np.random.default_rng(0)
PLAIN = {"x": RNG.normal(size=ROWS), "y": RNG.normal(size=ROWS)}


def notes_of(labels=False, **columns):
    raw = RawTable.from_columns({**PLAIN, **columns})
    features = tuple(name for name in raw.columns if name != "y")
    return diagnose(raw, TableSchema("y", features, labels))


def test_nothing_is_said_of_a_plain_table():
    assert notes_of(count=RNG.integers(0, 9, ROWS), year=np.repeat([2023, 2024], ROWS // 2)) == []


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("receipt", np.arange(ROWS)),
        ("receipt", 1000 - 3 * np.arange(ROWS)),
        ("receipt", RNG.permutation(ROWS)),
        ("customer_id", RNG.choice(10**6, ROWS, replace=False)),
        ("customerId", RNG.choice(10**6, ROWS, replace=False)),
    ],
)
def test_identifiers(name, values):
    (note,) = notes_of(**{name: values})
    assert note.startswith(f"{name} looks like an identifier")
    assert f'data.ignore=["{name}"]' in note


def test_what_is_no_identifier():
    assert notes_of(income=RNG.choice(10**6, ROWS, replace=False), paid=np.arange(ROWS) / 2, humid=[7.0] * ROWS) == []


@pytest.mark.parametrize("value", [1e200, -1e200])
@pytest.mark.parametrize("name", ["x", "y"])
def test_values_that_cannot_be_scaled_are_refused(name, value):
    values = PLAIN[name].copy()
    values[3] = value
    with pytest.raises(DataError, match=rf'Column "{name}" is {value:g} in row 5; .*data\.missing'.replace("+", r"\+")):
        notes_of(**{name: values})


def test_outliers_that_decide_the_scale():
    values = PLAIN["x"].copy()
    values[7] = -1e12
    (note,) = notes_of(x=values)
    assert note.startswith("x is -1e+12 in row 9, though half of its values lie between")


def test_a_target_of_two_numbers():
    two = RNG.integers(0, 2, ROWS)
    (note,) = notes_of(y=two)
    assert "--problem logistic" in note
    assert notes_of(y=two, labels=True) == []


def test_booleans_and_dates():
    dates = np.datetime64("2024-01-01") + RNG.integers(0, 300, ROWS)
    assert notes_of(member=RNG.random(ROWS) < 0.5, when=dates) == [
        "true and false became 1 and 0: member",
        "dates became days since 1970: when",
    ]


def test_the_target_cannot_name_the_client():
    with pytest.raises(ConfigError, match=r'target and data.client_column are both "shop"'):
        TableFile(path="shops.csv", target="shop", client_column="shop")


def test_what_the_reader_and_the_diagnosis_say_is_in_the_notes(tmp_path):
    lines = [
        "when;site;price;y",
        *(f"2024-01-{i % 28 + 1:02}T00:00Z;{'ab'[i % 2]};{i},5;{i * i % 7}" for i in range(ROWS)),
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = TableFile(path=str(tmp_path / "t.csv"), target="y", client_column="site")
    notes = table.prepare(DataRequest()).notes
    assert "decimal commas were read as such: price" in notes
    assert "times with a time zone are counted in UTC: when" in notes
    assert "dates became days since 1970: when" in notes
