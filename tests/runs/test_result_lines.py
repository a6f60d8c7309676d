import json

from asyncfed.core.record import Record
from asyncfed.runs.result_lines import append_line, decode, end_last_line, read_lines


class Pair(Record):
    one: int
    other: float | None


def test_what_was_cut_off_is_ignored_and_the_next_line_begins_anew(tmp_path):
    file = tmp_path / "runs.jsonl"
    append_line(file, {"key": 1})
    with file.open("ab") as cut:
        cut.write(b'{"key": 2, "out')
    assert [line["key"] for line in read_lines(file)] == [1]
    end_last_line(file)
    append_line(file, {"key": 3})
    assert [line["key"] for line in read_lines(file)] == [1, 3]
    end_last_line(file)
    assert file.read_text().count("\n") == 3


def test_lines_are_plain_json(tmp_path):
    append_line(tmp_path / "runs.jsonl", {"a": 1.5, "b": None})
    assert json.loads((tmp_path / "runs.jsonl").read_text()) == {"a": 1.5, "b": None}
    assert list(read_lines(tmp_path / "none.jsonl")) == []


def test_what_is_of_another_kind_is_nothing():
    assert decode({"one": 1, "other": None}, Pair) == Pair(1, None)
    assert decode({"one": "x", "other": None}, Pair) is None
    assert decode(None, Pair) is None
