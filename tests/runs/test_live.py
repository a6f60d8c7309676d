"""Live runs from beginning to end: what they refuse, how they are interrupted and resumed, and that they replay."""

import os
import signal

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.runs.live import resume_live, run_live


def test_a_live_run_ends_like_a_simulated_one_and_replays_to_the_last_bit(three_clients, tmp_path, check_whole):
    path = tmp_path / "live.sqlite"
    # Tasks of one length: on a busy machine one client would else be merged much more often than the others.
    run = run_live(three_clients(120), engine=LocalEngine(task_seconds=0.02), out=path)
    simulated = af.run(three_clients(120))
    assert run.verdict == "finished"
    assert run.evaluations["objective"][-1] == pytest.approx(simulated.evaluations["objective"][-1], rel=0.2)
    check_whole(path, 120)


def test_interrupted_runs_take_what_is_nearly_done_and_can_be_resumed(three_clients, tmp_path, events, check_whole):
    path = tmp_path / "live.sqlite"
    engine = LocalEngine(task_seconds=0.05)

    def interrupt(progress):
        if progress.updates >= 5:
            os.kill(os.getpid(), signal.SIGINT)

    run = run_live(three_clients(40), engine=engine, out=path, watch=once(interrupt))
    assert run.verdict == "interrupted"
    done = run.header["verdict"], len(events(run, "merge"))
    assert 5 <= done[1] < 40
    elapsed = events(run, "merge")[-1].time
    run.journal.close()
    resumed = af.resume(path)
    assert resumed.verdict == "finished"
    assert events(resumed, "merge")[done[1]].time >= elapsed
    check_whole(path, 40)
    assert af.resume(path).sha256 == resumed.sha256  # a finished run is left as it is


def once(watch):
    """Interrupting twice would be killing."""
    done = []

    def called(progress):
        if not done:
            watch(progress)
            if progress.updates >= 5:
                done.append(True)

    return called


def test_simulated_runs_are_not_resumed_live(small, tmp_path):
    af.run(small(), out=tmp_path / "run.sqlite")
    with pytest.raises(JournalError, match="is a simulated run"):
        resume_live(tmp_path / "run.sqlite")


def test_what_makes_no_sense_live_is_refused(small, tmp_path):
    with pytest.raises(ConfigError, match="come and go by themselves"):
        run_live(small(churn=(af.Churn(time=1.0, client=0, event="leave"),)), out=tmp_path / "x.sqlite")
    with pytest.raises(ConfigError, match=r"evaluation\.drift"):
        run_live(small(evaluation=af.Evaluation(drift=True)), out=tmp_path / "x.sqlite")
    with pytest.raises(ConfigError, match="slow names client 9"):
        run_live(small(), engine=LocalEngine(slow=((9, 2.0),)), out=tmp_path / "x.sqlite")
    assert not (tmp_path / "x.sqlite").exists()
