"""Record and Config: frozen values, their written forms, and rows of events as bytes."""

import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core import record
from asyncfed.core.record import (
    UNSET,
    Config,
    Record,
    UnsetType,
    ValidationError,
    from_plain,
    kind_of,
    leave_out,
    pack,
    pack_rows,
    replace,
    to_json,
    to_plain,
    unpack,
    unpack_rows,
    use_part_decoder,
)


class Point(Record):
    x: float
    y: float = 0.0


class Setting(Config, tag_field="kind", tag="setting"):
    rate: float = 0.5
    steps: tuple[int, ...] = (1, 2)
    rest: int | UnsetType = UNSET

    def __post_init__(self):
        if self.rate <= 0:
            raise ValueError(f"rate is {self.rate}")
        if self.rest == 0:
            leave_out(self, "rest")


@pytest.mark.parametrize("value", [Point(1.0), Setting()])
def test_values_are_frozen_equal_by_content_and_can_be_hashed_and_pickled(value):
    name = type(value).__struct_fields__[0]
    with pytest.raises(AttributeError):
        setattr(value, name, 3.0)
    assert value == replace(value)
    assert hash(value) == hash(replace(value))
    assert pickle.loads(pickle.dumps(value)) == value


def test_fields_are_positional_in_the_order_of_their_definition():
    assert Point(1.0, 2.0) == Point(y=2.0, x=1.0)


def test_a_changed_copy_is_checked_like_a_new_value():
    assert replace(Setting(), rate=0.25).rate == 0.25
    with pytest.raises(ValueError, match="rate is -1"):
        replace(Setting(), rate=-1)
    with pytest.raises(TypeError):
        replace(Setting(), pace=1)


def test_what_is_left_out_is_not_written():
    assert Setting(rest=0) == Setting()
    assert to_json(Setting(rest=0)) == '{"kind":"setting","rate":0.5,"steps":[1,2]}'
    assert to_plain(Setting(rest=3))["rest"] == 3


def test_plain_values_come_back():
    assert from_plain(to_plain(Setting(rate=2.0)), Setting) == Setting(rate=2.0)
    assert from_plain({}, Setting) == Setting()


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"rate": "fast"}, r"Expected `float`, got `str` - at `\$\.rate`"),
        ({"pace": 1}, "unknown field `pace`"),
        ({"steps": [1, "two"]}, r"at `\$\.steps\[1\]`"),
        ({"kind": "other"}, "Invalid value 'other'"),
        ({"rate": -1.0}, "rate is -1"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(plain, words):
    with pytest.raises(ValidationError, match=words):
        from_plain(plain, Setting)


class Holder(Config):
    part: object


def test_classes_that_are_no_records_are_decoded_by_the_caller():
    class Sound:
        def __init__(self, name):
            self.name = name

    class Instrument(msgspec.Struct):
        sound: Sound

    before = list(record._part_decoders)
    try:
        use_part_decoder(lambda kind, plain: kind(plain))
        assert from_plain({"sound": "low"}, Instrument).sound.name == "low"
        assert unpack(msgspec.msgpack.encode({"sound": "low"}), Instrument).sound.name == "low"
    finally:
        record._part_decoders[:] = before


def test_a_kind_is_a_tag():
    assert kind_of(Setting) == "setting"
    assert kind_of(Holder) is None
    assert kind_of(dict) is None


def test_json_is_the_same_for_equal_values():
    assert to_json({"b": 1, "a": [1.5, None]}) == to_json({"a": [1.5, None], "b": 1}) == '{"a":[1.5,null],"b":1}'
    assert to_json([float("nan"), float("inf")]) == "[null,null]"


cells = st.one_of(st.none(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.text(max_size=5))
rows = st.lists(st.tuples(cells, cells), max_size=40)


@given(rows, rows)
@settings(max_examples=40)
def test_rows_come_back_and_joined_bytes_are_joined_rows(one, other):
    packed = pack_rows(one)
    assert [tuple(row) for row in unpack_rows(packed, len(one))] == one
    assert packed + pack_rows(other) == pack_rows(one + other)


@pytest.mark.parametrize("count", [0, 15, 16, 65535, 65536])
def test_the_length_of_the_list_never_enters_its_bytes(count):
    """MessagePack writes lengths in three ways; the bytes of a row are the same in each."""
    assert pack_rows([(1,)] * count) == pack_rows([(1,)]) * count


def test_records_are_packed_and_unpacked():
    assert unpack(pack(Point(1.0, 2.0)), Point) == Point(1.0, 2.0)


@pytest.mark.parametrize("packed", [b"", b"\xc1", pack("text"), pack({"x": "no number"}), b"\x91" * 100_000])
def test_bytes_that_are_no_such_record_are_refused(packed):
    with pytest.raises(ValidationError):
        unpack(packed, Point)


def test_a_field_gets_its_type_in_a_class_that_is_made_once():
    class State(record.Record):
        memory: Any = None

    typed = record.with_field_type(State, "memory", Point)
    assert record.from_plain({"memory": {"x": 1.0, "y": 2.0}}, typed).memory == Point(1.0, 2.0)
    assert record.with_field_type(State, "memory", Point) is typed
    assert record.from_plain({"memory": 3}, record.with_field_type(State, "memory", int)).memory == 3
