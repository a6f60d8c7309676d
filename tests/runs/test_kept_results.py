import json

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record
from asyncfed.runs.chosen_names import choose_names
from asyncfed.runs.kept_results import Computation, KeptResults
from asyncfed.runs.process_pool import SameProcess


class Square(Record):
    """A result."""

    value: int


def _compute(path, numbers):
    """The results of these numbers, and of which they were computed."""
    computed, found = [], []

    def square(number):
        computed.append(number)
        return Square(number * number)

    wanted = [Computation(str(number), square, (number,)) for number in numbers]
    KeptResults(path, Square).compute(wanted, SameProcess(), found.append)
    return sorted(one.value for one in found), computed


def test_what_has_a_line_is_not_computed_again(tmp_path):
    path = tmp_path / "new" / "lines.jsonl"
    assert _compute(path, [1, 2]) == ([1, 4], [1, 2])
    assert _compute(path, [2, 3]) == ([4, 9], [3])


def test_a_line_that_was_cut_off_or_holds_something_else_is_computed_anew(tmp_path):
    path = tmp_path / "lines.jsonl"
    _compute(path, [1, 2])
    first = path.read_text().splitlines()[0]
    path.write_text(first + "\n" + json.dumps({"key": "3", "result": {"other": 1}}) + '\n{"key": "2", "res')
    assert _compute(path, [1, 2, 3]) == ([1, 4, 9], [2, 3])
    assert _compute(path, [1, 2, 3]) == ([1, 4, 9], [])


def test_a_name_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match='The study has no codec "topk"'):
        choose_names("study", "codec", ["topk"], ["top_k", "sign"])
