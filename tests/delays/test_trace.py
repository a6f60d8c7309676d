"""A trace hands out what its file says, and a bad file is refused with the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.delays import read_trace


def written(folder: Path, text: str) -> str:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_rows_come_in_file_order_and_wrap_round(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "client,seconds\n0,1.5\n2,9\n0,2.5\n"))
    assert [trace.seconds(0, ticket) for ticket in range(4)] == [1.5, 2.5, 1.5, 2.5]
    assert [trace.seconds(2, ticket) for ticket in range(2)] == [9.0, 9.0]


def test_a_client_that_was_not_measured_gets_the_pooled_rows(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "client,seconds\n0,1.5\n2,9\n0,2.5\n"))
    assert [trace.seconds(7, ticket) for ticket in range(4)] == [1.5, 9.0, 2.5, 1.5]


def test_ticket_numbers_give_the_order_and_other_columns_are_ignored(tmp_path: Path) -> None:
    text = "\ufeffnote, seconds ,client,ticket_number\nlast,3,0,12\n\nfirst,1,0,4\nmiddle,2,0,7\n"
    trace = read_trace(written(tmp_path, text))
    assert [trace.seconds(0, ticket) for ticket in range(3)] == [1.0, 2.0, 3.0]


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
        ("client,seconds,ticket_number\n0,1,soon\n", "line 2: ticket_number is 'soon'; it must be a whole number"),
    ],
)
def test_a_bad_file_is_refused_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        read_trace(path)
    assert path in str(caught.value)


def test_a_missing_or_binary_file_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.csv cannot be read as a CSV text file: .*Check the path"):
        read_trace(str(tmp_path / "nowhere.csv"))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(ConfigError, match=r"binary\.csv cannot be read as a CSV text file"):
        read_trace(str(tmp_path / "binary.csv"))
