"""Verifying: a run that is as it was left, and what is said about one that is not."""

import sqlite3

import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.core.types import Budget
from asyncfed.delays import Delays, Exponential

PARTS = ("journal", "params", "rounds", "evaluations")


@pytest.fixture
def path(small, tmp_path):
    file = tmp_path / "run.sqlite"
    af.run(small(delays=Delays(compute=Exponential(mean=1.0))), out=file).journal.close()
    return file


def change(path, sql):
    with sqlite3.connect(path) as file:
        file.execute(sql)
    file.close()


def test_a_run_as_it_was_left_is_the_same_in_every_part(path):
    verification = af.verify(path)
    assert verification.ok
    assert verification.lines[0] == "the file agrees with its seal"
    assert verification.lines[1:] == tuple(f"{part}: the same when replayed" for part in PARTS)


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("UPDATE rounds SET energy = energy + 1 WHERE round = 2", "rounds"),
        ("UPDATE evaluations SET metrics = json_set(metrics, '$.objective', 7) WHERE round = 2", "evaluations"),
    ],
)
def test_a_changed_number_is_found(path, sql, part):
    change(path, sql)
    verification = af.verify(path)
    assert not verification.ok
    assert f"{part}: NOT THE SAME when replayed" in verification.lines
    assert sum("NOT THE SAME" in line for line in verification.lines) == 1


def test_a_changed_event_breaks_the_seal(path):
    change(path, "UPDATE details SET text = replace(text, 'batch_size', 'batch_size')||' ' WHERE id = 0")
    verification = af.verify(path)
    assert not verification.ok
    assert verification.lines[0] == "THE FILE WAS CHANGED after the run: it breaks its seal"


def test_an_unfinished_run_cannot_be_verified(small, tmp_path):
    def break_off(progress):
        raise KeyboardInterrupt

    file = tmp_path / "other.sqlite"
    with pytest.raises(KeyboardInterrupt):
        af.run(small(budget=Budget(rounds=500)), out=file, watch=break_off)
    with pytest.raises(JournalError, match="is not finished, so there is nothing to compare"):
        af.verify(file)


def test_progress_counts_the_reports(path):
    seen = []
    af.verify(path, watch=seen.append)
    assert seen[-1] == af.load(path).participation().sum()
    assert seen == sorted(seen)


def test_the_file_is_closed_afterwards(path):
    af.verify(path)
    assert not path.with_name(path.name + "-wal").exists()
