"""What texts stand for: Arrow's way says what the slow twin says."""

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.reading.plain_texts import meaning_of

from asyncfed.core.errors import DataError
from asyncfed.data.raw_table import MISSING
from asyncfed.data.reading.text_columns import Texts, read_texts

NUMBERS = [
    "1",
    "-2.5",
    "+3",
    " 7 ",
    "1e3",
    ".5",
    "5.",
    "1e400",
    "-1e200",
    "1_0",
    "0x1",
    "inf",
    "NaN",
    "-nan",
    "--1",
    "1e",
]
COMMAS = ["1,5", "1.234,5", "1,234", "12,34", "1,234.5", "-1,", ",5", "1.234.567", "1,2,3"]
DATES = ["2024-01-31", "2024-02-30", "1970-01-01T12:00", "2024-01-31 23:59:59.5", "2024-01-31T10:00:00+02:00"]
DATES += ["2024-01-31T10:00:00Z", "20240131T10", "2024-1-1"]
OTHERS = [
    "true",
    "False",
    "yes",
    "NO",
    "",
    "NA",
    " NA ",
    "?",
    "red",
    " red",
    "grün",
    "Zürich",
    "ß",
    "東京",
    "a\nb",
    '"',
]
TEXTS = [st.sampled_from(some) for some in (NUMBERS, NUMBERS[:6], COMMAS, DATES, DATES[:4:2], OTHERS, OTHERS[:8])]


def texts_of(texts):
    column = pyarrow.array(texts, pyarrow.string()).dictionary_encode()
    return Texts(column.dictionary, column.indices.fill_null(-1).to_numpy().astype(np.int32))


def read(texts, missing=MISSING, **how):
    return read_texts("c", texts_of(texts), missing, **how)


@given(
    st.one_of(*(st.lists(some, max_size=12) for some in (*TEXTS, st.one_of(*TEXTS), st.text(max_size=3)))),
    st.sampled_from(",;"),
    st.booleans(),
)
def test_it_says_what_the_slow_twin_says(texts, delimiter, as_category):
    expected = meaning_of(texts, MISSING, as_category, delimiter)
    if expected is None:
        with pytest.raises(DataError, match="holds numbers, but in row"):
            read(texts, as_category=as_category, delimiter=delimiter)
        return
    found = read(texts, as_category=as_category, delimiter=delimiter)
    kind, values, writing = expected
    assert (found.column.kind, found.writing) == (kind, writing)
    if kind == "category":
        levels = found.column.levels
        assert [levels[code] if code >= 0 else None for code in found.column.values] == values
        assert list(levels) == sorted({value for value in values if value is not None})
    else:
        np.testing.assert_array_equal(found.column.values, values)


def test_a_text_among_numbers_is_named_with_its_row():
    with pytest.raises(DataError, match=r'Column "c" holds numbers, but in row 5 it says "x"'):
        read(["1", "2", "3", "x"])


def test_commas_mean_what_they_mean_beside_the_delimiter():
    assert read(["1,234", "5"], delimiter=",").column.values.tolist() == [1234.0, 5.0]
    assert read(["1,234", "5"], delimiter=";").column.values.tolist() == [1.234, 5.0]
    assert read(["1.234,5"], delimiter=",").writing == "decimal comma"


def test_times_with_a_zone_are_counted_in_utc():
    found = read(["1970-01-02T00:00+02:00", "1970-01-01T00:00Z"])
    assert found.writing == "time zone"
    np.testing.assert_allclose(found.column.values, [22 / 24, 0.0])
