"""Events read into columns by the kernel are those that MessagePack's own reader gives."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.kernels.event_columns import FIELDS, read_event_columns

whole = st.integers(-(2**63), 2**63 - 1)
values = st.one_of(st.none(), st.booleans(), whole, st.floats(allow_nan=False))


def as_twin(rows):
    """The readable twin: what each column must hold."""
    columns = []
    for field in range(FIELDS):
        real = field in (1, 6, 7)
        column = []
        for row in rows:
            value = row[field]
            if real:
                column.append(math.nan if value is None else float(value))
            else:
                column.append(-1 if value is None or isinstance(value, float) else int(value))
        columns.append(column)
    return columns


def pack(rows):
    return b"".join(msgspec.msgpack.encode(row) for row in rows)


@given(st.lists(st.lists(values, min_size=FIELDS, max_size=FIELDS), max_size=20))
def test_as_its_twin(rows):
    found = read_event_columns(pack(rows), len(rows))
    for column, expected in zip(found, as_twin(rows), strict=True):
        assert [repr(value) for value in column.tolist()] == [repr(value) for value in expected]


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_block_that_is_cut_off_is_refused(cut):
    packed = pack([[1, 2.5, 0, 3, 4, 5, None, 7.0, 300]])
    with pytest.raises(ValueError, match="reading them ended"):
        read_event_columns(packed[:-cut], 1)


@given(st.binary(max_size=200), st.integers(0, 5))
def test_any_bytes_are_read_or_refused(packed, count):
    try:
        found = read_event_columns(packed, count)
    except ValueError:
        return
    rows = msgspec.msgpack.decode(b"\xdd" + count.to_bytes(4, "big") + packed)
    assert len(found.seq) == len(rows)
