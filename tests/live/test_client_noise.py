"""Noise that clients add themselves: from their own entropy, kept in the journal, and found there by replay."""

import numpy as np
import pytest
from tests.live.tiny_parts import Blurred

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.types import Budget, Work
from asyncfed.kernels.noise_keys import is_secret
from asyncfed.live.session import CheckpointPolicy
from asyncfed.strategies import FedAsync
from asyncfed.uplinks import Clip, ErrorFeedback, SendIf, TopK
from asyncfed.uplinks.chain import encode_change
from asyncfed.uplinks.noise import draws_noise

BASE = {"epochs": 1, "batch_size": 4, "learning_rate": 0.01}
NOISY = FedAsync(concurrency=3, work=Work(**BASE, uplink=(Clip(norm=0.5), Blurred())))
COMPRESSED = FedAsync(concurrency=3, work=Work(**BASE, uplink=(Blurred(), TopK(fraction=0.5))))
REMEMBERING = FedAsync(concurrency=3, work=Work(**BASE, uplink=(ErrorFeedback(codec=TopK(fraction=0.5)), Blurred())))
SKIPPING = FedAsync(concurrency=3, work=Work(**BASE, uplink=(Blurred(), SendIf(threshold=1.2))))
"""Whether it sends depends on noise that nobody else knows."""


def test_which_uplinks_add_noise():
    assert draws_noise((Clip(), Blurred()))
    assert not draws_noise((Clip(), ErrorFeedback(codec=TopK())))
    assert not draws_noise(Work().uplink)


def test_noise_that_would_be_taken_back_with_the_next_change_is_refused():
    with pytest.raises(ConfigError, match="Blurred, which adds noise"):
        ErrorFeedback(codec=Blurred())


class Noted:
    """An uplink that writes down the key it is given."""

    remembers = False

    def __init__(self, keys, draws_noise):
        self.keys, self.draws_noise = keys, draws_noise

    def encode(self, memory, change, key):
        self.keys.append(key)
        return {"change": change}, memory

    def decode(self, message, num_params, dtype):
        return message["change"]

    init = size = None


def test_only_uplinks_that_add_noise_get_a_key_that_the_server_does_not_know():
    served, own, again = [], [], []
    both = (Noted(served, False), Noted(own, True), Noted(served, False))
    secret = iter([11, 12])
    encode_change(both, {}, np.ones(3), 5, np.zeros(3), lambda: next(secret))
    encode_change(both, {}, np.ones(3), 5, np.zeros(3), lambda: next(secret))
    encode_change((Noted(again, False), Noted(again, True), Noted(again, False)), {}, np.ones(3), 5, np.zeros(3))
    assert own == [11, 12]
    assert served[:2] == served[2:] == [again[0], again[2]]


def test_a_client_draws_another_secret_key_each_time(live_run, monkeypatch):
    keys = []
    encode = Blurred.encode
    monkeypatch.setattr(Blurred, "encode", lambda self, *given: (keys.append(given[2]), encode(self, *given))[1])
    live = live_run(strategy=NOISY)
    live.play()
    assert len(keys) == len(set(keys)) > 3
    assert all(map(is_secret, keys))


@pytest.mark.parametrize("seconds", [0.0, 4.0, 1e9])
@pytest.mark.parametrize("strategy", [NOISY, COMPRESSED, REMEMBERING, SKIPPING])
def test_such_a_run_replays_and_resumes_to_the_same_model(live_run, strategy, seconds):
    live = live_run(strategy=strategy, budget=Budget(updates=20), checkpoints=CheckpointPolicy(seconds=seconds))
    choice = np.random.default_rng(0)
    live.commit()
    for step in range(10**6):
        if live.session.finished:
            break
        live.answer(int(choice.choice(list(live.held))))
        live.commit()
        if step in (3, 4, 9):
            before = live.session.state.params.tobytes()
            live.crash()
            assert live.session.state.params.tobytes() == before
            live.commit()
    assert bool(live.events("skipped")) == (strategy is SKIPPING)
    live.check_whole()


def test_a_message_that_was_changed_in_the_file_is_noticed(live_run):
    live = live_run(strategy=NOISY)
    live.play()
    live.journal._connection.execute("UPDATE released SET bytes = zeroblob(length(bytes)) WHERE ticket = 1")
    with pytest.raises(JournalError, match="ticket 1"):
        live.check_whole()


@pytest.mark.slow
def test_verify_says_that_messages_come_from_the_file(small, tmp_path):
    path = tmp_path / "live.sqlite"
    assert af.run_live(small(strategy=NOISY, budget=Budget(updates=12)), out=path).verdict == "finished"
    verification = af.verify(path)
    assert verification.ok, verification.lines
    assert any("messages hold noise of their clients' own" in line for line in verification.lines)


def test_simulated_noise_is_keyed_and_trained_again(small, tmp_path):
    experiment = small(strategy=NOISY, budget=Budget(updates=12))
    simulated = [af.run(experiment, out=tmp_path / f"{n}.sqlite").sha256 for n in range(2)]
    assert simulated[0] == simulated[1]
    verification = af.verify(tmp_path / "0.sqlite")
    assert verification.ok, verification.lines
    assert not any("messages" in line for line in verification.lines)
