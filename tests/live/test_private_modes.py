"""Private runs of every mode resume and replay, simulated and live; live ones keep no merged update without noise."""

import os
import signal
from itertools import count

import numpy as np
import pytest
from tests.live.test_private_journal import play_and_look

import asyncfed as af
from asyncfed.core.types import Budget, Work
from asyncfed.kernels.noise_keys import secret_key
from asyncfed.live import session
from asyncfed.live.session import CheckpointPolicy
from asyncfed.privacy import Central, Local, Tree
from asyncfed.runs.privacy_record import faults_of_noise
from asyncfed.strategies import FedAsync, FedBuff

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
BUFFERED = FedBuff(concurrency=2, buffer_size=2, server_lr=1.0, work=WORK)
MODES = {
    "central": {"strategy": BUFFERED, "privacy": Central(epsilon=8.0, participations=4)},
    "tree": {"strategy": BUFFERED, "privacy": Tree(epsilon=8.0, participations=4, separation=0)},
    "local": {"strategy": FedAsync(concurrency=3, work=WORK), "privacy": Local(epsilon=8.0, uploads=6)},
}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_simulated_one_resumes_to_the_same_bytes_and_verifies(small, tmp_path, mode):
    often = {"uploads": 80} if isinstance(mode["privacy"], Local) else {"participations": 70}
    privacy = af.replace(mode["privacy"], **often)
    experiment = small(strategy=mode["strategy"], privacy=privacy, budget=Budget(updates=200))
    whole = af.run(experiment, out=tmp_path / "whole.sqlite")
    moments = count()
    pressed = af.run(
        experiment,
        out=tmp_path / "stopped.sqlite",
        watch=lambda progress: os.kill(os.getpid(), signal.SIGINT) if next(moments) == 0 else None,
    )
    assert pressed.verdict == "interrupted"
    pressed.journal.close()
    resumed = af.resume(tmp_path / "stopped.sqlite")
    assert resumed.sha256 == whole.sha256
    for name in ("whole", "stopped"):
        verification = af.verify(tmp_path / f"{name}.sqlite")
        assert verification.ok, verification.lines


@pytest.mark.parametrize("seconds", [0.0, 4.0, 1e9])
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_live_one_resumes_after_crashes_and_replays(live_run, mode, seconds):
    live = live_run(**mode, budget=Budget(rounds=7), checkpoints=CheckpointPolicy(seconds=seconds))
    choice = np.random.default_rng(2)
    live.commit()
    for step in count():
        if live.session.finished:
            break
        live.answer(int(choice.choice(list(live.held))))
        live.commit()
        if step in (2, 3, 7):
            before = live.session.state.params.tobytes()
            live.crash()
            assert live.session.state.params.tobytes() == before
            live.commit()
    assert live.session.state.updates > 4
    live.check_whole()


@pytest.mark.parametrize("mode", ["central", "tree"])
def test_a_live_one_holds_no_update_that_was_merged(live_run, mode):
    live = live_run(**MODES[mode], budget=Budget(rounds=5), checkpoints=CheckpointPolicy(seconds=1e9))
    found = play_and_look(live, crashes=(3,))
    assert all(not merged for merged, _ in found)
    assert any(waiting for _, waiting in found)
    live.check_whole()


def test_noise_of_two_live_runs_has_nothing_in_common(live_run):
    for mode in MODES.values():
        ends = []
        for _ in range(2):
            live = live_run(**mode, budget=Budget(rounds=4))
            live.play()
            ends.append(live.session.state.params)
        assert not np.any(ends[0] == ends[1])


def test_releases_of_a_live_run_have_noise_of_their_own(live_run, monkeypatch):
    live = live_run(**MODES["central"], budget=Budget(rounds=5))
    live.play()
    assert faults_of_noise(live.journal) == ()
    monkeypatch.setattr(session, "draw_noise_key", lambda version: secret_key(7))
    live = live_run(**MODES["central"], budget=Budget(rounds=5))
    live.play()
    releases = len(live.events("merge"))
    assert faults_of_noise(live.journal) == (
        f"{releases - 1} releases have the same noise as another, and their difference none",
    )


def test_a_release_without_a_key_of_noise_is_noticed(small):
    """A simulated run has none, since its noise follows from the seed."""
    run = af.run(small(**MODES["central"], budget=Budget(rounds=5)))
    releases = run.privacy().releases
    assert faults_of_noise(run.journal) == (f"{releases} releases have no key of noise",)
