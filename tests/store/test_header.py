"""What a run's file says about itself is checked before anybody computes with it."""

import json

import pytest

from asyncfed.core.errors import JournalError
from asyncfed.store.header import read_header

GOOD = {"num_clients": 4, "experiment": {"strategy": {}, "name": "x"}, "problem": "ab", "later": [1]}


def rows(**changes):
    return [(name, json.dumps(value)) for name, value in {**GOOD, **changes}.items()]


def test_entries_are_as_they_were_written():
    header = read_header(None, rows())
    assert dict(header) == GOOD
    with pytest.raises(JournalError, match='its header has no "sha256"'):
        header["sha256"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("num_clients", "4", "Expected `int`, got `str`"),
        ("num_clients", -1, r"is -1 \(it must be from 1 to 100000000"),
        ("num_clients", 2**70, "must be from 1 to"),
        ("experiment", [], "Expected `object`, got `array`"),
        ("experiment", {"strategy": 3}, "names no strategy"),
        ("problem", 7, '"problem" of its header is 7'),
        ("sha256", {"journal": 1}, "Expected `str`, got `int`"),
        ("live", 0, "Expected `object`"),
    ],
)
def test_values_of_another_type_or_range_are_damage(name, value, words):
    with pytest.raises(JournalError, match=words):
        read_header(None, rows(**{name: value}))


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, b"\xff", None])
def test_what_is_not_json_is_damage(text):
    with pytest.raises(JournalError, match="is damaged"):
        read_header(None, [("verdict", text)])
