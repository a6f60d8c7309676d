"""Simulating: checkpoints, progress, and the state that is left afterwards."""

import gc
import sqlite3

import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.core.types import Budget
from asyncfed.runs.progress import Progress


def test_progress_is_reported_until_the_end(small):
    seen = []
    run = af.run(small(budget=Budget(rounds=200)), watch=seen.append)
    assert all(type(progress) is Progress for progress in seen)
    assert [progress.updates for progress in seen] == sorted(progress.updates for progress in seen)
    assert seen[-1].rounds == 200
    assert seen[-1].elapsed == run.rounds["elapsed"][-1]
    assert seen[-1].objective == run.evaluations["objective"][-1]


@pytest.mark.parametrize(("seconds", "several"), [(0.0, True), (3600.0, False)])
def test_checkpoints_are_written_as_often_as_asked(small, tmp_path, seconds, several):
    path, kept = tmp_path / "run.sqlite", set()

    def read_checkpoint(progress):
        with sqlite3.connect(path) as file:
            kept.update(file.execute("SELECT seq FROM checkpoints"))

    af.run(small(budget=Budget(rounds=400)), out=path, watch=read_checkpoint, checkpoint_seconds=seconds)
    assert (len(kept) > 1) is several


def test_the_garbage_collector_is_as_it_was(small):
    af.run(small())
    assert gc.isenabled()
    gc.disable()
    try:
        af.run(small())
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_nothing_is_made_if_something_is_refused(small, tmp_path):
    path = tmp_path / "folder" / "run.sqlite"
    with pytest.raises(af.errors.ConfigError):
        af.run(small(stopping=af.Stopping(patience=2)), out=path)  # no rows are held out to measure on
    assert not path.parent.exists()


def test_a_file_that_exists_is_left_alone(small, tmp_path):
    path = tmp_path / "run.sqlite"
    first = af.run(small(), out=path).sha256
    with pytest.raises(JournalError, match="exists already, and nothing was overwritten"):
        af.run(small(seed=5), out=path)
    assert af.load(path).sha256 == first
    assert af.run(small(seed=5), out=path, force=True).sha256 != first
