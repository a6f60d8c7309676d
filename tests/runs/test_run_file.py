"""A run's file while it is written, and how a run goes on that was stopped."""

import os

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.core.types import Budget
from asyncfed.runs.run_file import check_run_file, open_to_resume


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


class Stopped(Exception):
    """What a test raises in the middle of a run."""


def stop(progress):
    raise Stopped


def test_a_run_that_is_running_can_be_read_and_not_written(small, path, cli):
    experiment, tried = small(budget=Budget(rounds=400)), []

    def look(progress):
        if tried or progress.updates < 20:
            return
        tried.append(progress.updates)
        for attempt in (
            lambda: af.resume(path),
            lambda: af.run(small(), out=path),
            lambda: af.run(small(), out=path, force=True),
            lambda: af.run_live(small(), out=path, force=True),
            lambda: check_run_file(path, True),
        ):
            with pytest.raises(JournalError, match=rf"is being written by process {os.getpid()} on "):
                attempt()
        running = af.load(path)
        assert running.reason == "it is still running"
        assert running.verdict == "interrupted"
        assert len(list(running.journal.event_rows())) > 0
        shown = cli("show", path)
        assert shown.code == 0
        assert "still running: it is being written by process" in shown.out

    done = af.run(experiment, out=path, watch=look, checkpoint_seconds=0.0)
    assert tried
    assert done.sha256 == af.run(experiment).sha256
    assert done.writer is None


def test_a_run_that_was_stopped_by_an_error_can_be_resumed_at_once(small, path):
    experiment = small(budget=Budget(rounds=400))
    with pytest.raises(Stopped):
        af.run(experiment, out=path, watch=stop, checkpoint_seconds=0.0)
    with pytest.raises(Stopped):
        af.resume(path, watch=stop)
    assert af.resume(path).sha256 == af.run(experiment).sha256


def test_a_run_that_is_over_is_opened_to_be_read(small, path):
    af.run(small(), out=path).journal.close()
    journal = open_to_resume(path)
    with pytest.raises(JournalError, match="opened to be read"):
        journal.commit(None, None)
    assert af.resume(path).finished


def test_what_a_resumed_run_shows_first_is_what_was_measured_last(small, path):
    """It used to show nothing until the next measurement, which may be hours away."""
    experiment = small(budget=Budget(updates=400), evaluation=af.Evaluation(every=50, unit="update"))
    seen = []

    def watch(progress):
        seen.append(progress)
        if progress.updates > 120:
            raise Stopped

    with pytest.raises(Stopped):
        af.run(experiment, out=path, watch=watch, checkpoint_seconds=0.0)
    saved = af.load(path)
    with pytest.raises(Stopped):
        af.resume(path, watch=lambda progress: (seen.clear(), seen.append(progress), stop(progress)))
    assert np.isfinite(seen[0].objective)
    assert seen[0].objective == saved.evaluations["objective"][-1]
    assert seen[0].updates >= saved.evaluations["updates"][-1] > 0
