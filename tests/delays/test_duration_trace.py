"""A trace hands out what its file says, and a bad file is refused with the line."""

from __future__ import annotations

import re
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.delays import read_trace

PURPOSE = purpose_key(0, "trace")


def written(folder: Path, text: str) -> str:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


THREE_ROWS = "client,seconds\n0,1.5\n2,9\n0,2.5\n"


def test_a_client_gets_its_own_rows_and_one_that_was_not_measured_any_row(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, THREE_ROWS), PURPOSE)
    drawn = {client: {trace.seconds(client, ticket) for ticket in range(100)} for client in (0, 2, 7)}
    assert drawn == {0: {1.5, 2.5}, 2: {9.0}, 7: {1.5, 2.5, 9.0}}


@pytest.mark.parametrize("every", [1, 2, 4, 10, 64])
def test_no_rhythm_of_dispatching_locks_on_a_row(tmp_path: Path, every: int) -> None:
    trace = read_trace(written(tmp_path, "client,seconds\n0,0\n0,1\n0,2\n0,3\n"), PURPOSE)
    drawn = [trace.seconds(0, ticket) for ticket in range(3, 3 + every * 4_000, every)]
    assert np.bincount(np.array(drawn, dtype=int)) == pytest.approx([1_000] * 4, abs=140)  # five standard deviations
    kept = np.mean(np.array(drawn[1:]) == np.array(drawn[:-1]))
    assert kept == pytest.approx(0.25, abs=0.035)


def test_a_draw_depends_on_seed_client_and_ticket_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "client,seconds\n" + "".join(f"0,{n}\n" for n in range(1_000)))
    trace, again = read_trace(path, PURPOSE), read_trace(path, PURPOSE)
    other_seed = read_trace(path, purpose_key(1, "trace"))
    tickets = range(20)
    assert [trace.seconds(0, t) for t in tickets] == [again.seconds(0, t) for t in reversed(tickets)][::-1]
    assert [trace.seconds(0, t) for t in tickets] != [other_seed.seconds(0, t) for t in tickets]
    assert [trace.seconds(5, t) for t in tickets] != [trace.seconds(6, t) for t in tickets]


def test_the_row_is_the_keyed_draw_and_other_columns_are_ignored(tmp_path: Path) -> None:
    text = "\ufeffnote, seconds ,client,ticket_number\na,0,0,12\n\nb,1,0,soon\nc,2,0,7\n"
    trace = read_trace(written(tmp_path, text), PURPOSE)
    for ticket in range(20):
        fraction = Fraction(draw_key(PURPOSE, 0, ticket), 2**64)
        assert trace.seconds(0, ticket) == floor(3 * fraction)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'line 1: the header needs a column "client"; it is empty'),
        ("client,second\n0,1\n", 'a column "seconds"; it has client, second. Did you mean "second"?'),
        ("who,seconds\n0,1\n", 'a column "client"; it has who, seconds. Known: seconds, who.'),
        ("client,seconds\n", "has no rows below its header; it needs at least 1"),
        ("client,seconds\n0,1\n0,fast\n", "line 3: seconds is 'fast'; it must be a number"),
        ("client,seconds\n0,-1\n", "line 2: seconds is '-1'; it must be finite and not negative"),
        ("client,seconds\n0,nan\n", "line 2: seconds is 'nan'; it must be finite"),
        ("client,seconds\n0,inf\n", "line 2: seconds is 'inf'; it must be finite"),
        ("client,seconds\n-1,2\n", "line 2: client is '-1'; it must be a whole number from 0"),
        ("client,seconds\n\n0.5,2\n", "line 3: client is '0.5'; it must be a whole number"),
        ("client,seconds\n0\n", "line 2: 1 values under 2 columns"),
        ('client,seconds,note\n0,1,"a\nb"\n0,x,c\n', "line 4: seconds is 'x'"),
    ],
)
def test_a_bad_file_is_refused_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        read_trace(path, PURPOSE)
    assert path in str(caught.value)


def test_a_missing_or_binary_file_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.csv cannot be read as a CSV text file: .*Check the path"):
        read_trace(str(tmp_path / "nowhere.csv"), PURPOSE)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(ConfigError, match=r"binary\.csv cannot be read as a CSV text file"):
        read_trace(str(tmp_path / "binary.csv"), PURPOSE)
