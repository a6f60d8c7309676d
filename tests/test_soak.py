"""The soak in a tiny form: its model counts, its reader of files finds what is wrong with them, its clients notice."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # the benchmarks lie beside the package, not in it

from benchmarks.soak import __main__ as soak
from benchmarks.soak.counting_problem import CountingProblem
from benchmarks.soak.journal_audit import DISPATCH, LOST, MERGE, REPORT, audit, prefix_digest
from benchmarks.soak.server import run

from asyncfed.core.types import Work

CLIENTS, MERGES = 3, 60


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("soak")
    assert run(folder / "run.sqlite", CLIENTS, MERGES, str(folder)) == "finished"
    return folder / "run.sqlite"


@pytest.fixture
def copied(finished, tmp_path):
    path = tmp_path / "run.sqlite"
    path.write_bytes(finished.read_bytes())
    return path


def rewrite(path, change):
    """Put the events through a function that may change, drop and add some, and number them anew."""
    with closing(sqlite3.connect(path)) as file:
        rows = []
        for count, block in file.execute("SELECT count, rows FROM events ORDER BY first_seq"):
            rows += msgspec.msgpack.decode(b"\xdd" + count.to_bytes(4, "big") + block)
        rows = [[number, *row[1:]] for number, row in enumerate(change(rows))]
        file.execute("DELETE FROM events")
        packed = b"".join(msgspec.msgpack.encode(row) for row in rows)
        file.execute("INSERT INTO events VALUES (0, ?, ?)", (len(rows), packed))
        file.execute("UPDATE checkpoints SET seq = ?", (len(rows),))
        file.commit()


def first(rows, kind):
    return next(place for place, row in enumerate(rows) if row[2] == kind)


def test_a_run_that_is_well(finished):
    found = audit(finished, CLIENTS)
    assert found.contradictions == []
    assert found.merges == MERGES == found.counts.sum()
    assert not (finished.parent / "contradictions").exists()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda rows: rows[: first(rows, DISPATCH)] + rows[first(rows, DISPATCH) + 1 :], "never sent"),
        (lambda rows: [*rows, rows[first(rows, MERGE)]], "merged twice"),
        (lambda rows: [*rows, rows[first(rows, REPORT)]], "answered twice"),
        (lambda rows: [*rows, rows[first(rows, DISPATCH)]], "sent twice"),
        (lambda rows: rows[: first(rows, MERGE)] + rows[first(rows, MERGE) + 1 :], "answered and never merged"),
        (lambda rows: rows[: first(rows, MERGE)] + rows[first(rows, MERGE) + 1 :], "the model counts"),
        (lambda rows: rows[: first(rows, MERGE)] + rows[first(rows, MERGE) + 1 :], "leads to version"),
        (lambda rows: [*rows, [0, 1e9, LOST, rows[first(rows, MERGE)][3], 0, 0, None, None, None]], "ended twice"),
    ],
)
def test_the_reader_finds_what_is_wrong(copied, change, complaint):
    rewrite(copied, change)
    assert any(complaint in line for line in audit(copied, CLIENTS).contradictions)


def test_the_reader_finds_a_gap(copied):
    with closing(sqlite3.connect(copied)) as file:
        file.execute("DELETE FROM events WHERE first_seq = 0")
        file.commit()
    assert any("missing" in line for line in audit(copied, CLIENTS).contradictions)


def test_a_prefix_is_known_by_its_digest(copied):
    count, whole = prefix_digest(copied)
    half = prefix_digest(copied, count // 2)
    assert half[0] == count // 2
    rewrite(copied, lambda rows: rows[:-1])
    assert prefix_digest(copied, count // 2) == half
    assert prefix_digest(copied)[1] != whole


def test_clients_notice_a_result_that_was_lost_or_merged_twice(tmp_path):
    shard, work = CountingProblem(2, str(tmp_path)).shard(1), Work()
    for count in (0, 1, 2):
        shard.train(np.array([7.0, count]), work, 5)
    assert not (tmp_path / "contradictions").exists()
    again = CountingProblem(2, str(tmp_path)).shard(1)
    again.train(np.array([9.0, 2.0]), work, 5)  # the server was killed: the last result was merged or not
    again.train(np.array([9.0, 5.0]), work, 5)
    again.train(np.array([9.0, 5.0]), work, 5)
    assert len((tmp_path / "contradictions").read_text().splitlines()) == 2


def test_memory_that_grows_is_found():
    assert soak._growth([100] * 50) == 0.0
    assert soak._growth([100 + step for step in range(50)]) > soak.MOST_GROWTH
    with pytest.raises(SystemExit, match="longer"):
        soak._growth([1, 2, 3])
