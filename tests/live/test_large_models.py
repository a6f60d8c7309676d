"""Models that are large, as far as memory and files are concerned: here every array is made to count as one."""

import itertools

import numpy as np
import pytest
from tests.live.test_kill import MIRRORED, QUIET, SPARSE, WORK, merge_until_killed
from tests.live.tiny_parts import Corrected

from asyncfed.core.types import Budget
from asyncfed.kernels import merging, recycled_memory
from asyncfed.live.session import CheckpointPolicy
from asyncfed.rules import vectors
from asyncfed.store import array_store
from asyncfed.strategies import ACE, AFL, FedAsync, FedAvg, FedBuff

STRATEGIES = {
    "latest average": AFL(concurrency=3, work=WORK),
    "mixing": AFL(concurrency=3, aggregate="mixing", work=WORK),
    "FedAsync": FedAsync(concurrency=4, work=WORK),
    "FedBuff": FedBuff(concurrency=4, buffer_size=3, work=WORK),
    "FedAvg": FedAvg(cohort_size=4, work=WORK),
    "rule": FedBuff(concurrency=3, buffer_size=2, work=SPARSE, rule=Corrected()),
    "mirrored": ACE(concurrency=3, work=MIRRORED),
    "quiet": ACE(concurrency=3, work=QUIET),
}


@pytest.fixture
def all_large(monkeypatch):
    """Call it, and every array is large from then on."""

    def count_as_large():
        for module in (array_store, recycled_memory, vectors):
            monkeypatch.setattr(module, "LARGE", 8)

    return count_as_large


def play(live, crashes=()):
    """Honest clients answer in a random order; no model that a ticket holds may change meanwhile."""
    chance, sent = np.random.default_rng(0), {}
    live.commit()
    for step in itertools.count():
        if live.session.finished:
            break
        sent |= {
            t: arrays["model"].copy() for t, (_, arrays) in live.tasks.items() if "model" in arrays and t not in sent
        }
        ticket = int(chance.choice(list(live.held)))
        if ticket in sent:
            assert np.array_equal(live.tasks[ticket][1]["model"], sent[ticket])
        live.answer(ticket)
        live.commit()
        live.tasks = {ticket: live.tasks[ticket] for ticket in live.held}  # else nothing would ever be used again
        if step in crashes:
            live.crash()
            live.commit()
            sent = {}
    return live.journal.sha256(), live.session.state.params.tobytes()


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_run_is_the_same_to_the_bit_with_memory_that_is_used_again(live_run, all_large, monkeypatch, name):
    how = {"strategy": STRATEGIES[name], "budget": Budget(updates=40), "checkpoints": CheckpointPolicy(seconds=3.0)}
    ordinary = play(live_run(**how))
    all_large()
    in_place = []
    for kernel in ("mix_into", "add_step_into"):
        original = getattr(merging, kernel)
        monkeypatch.setattr(merging, kernel, lambda *a, original=original: (in_place.append(1), original(*a)))
    large = live_run(**how)
    assert play(large) == ordinary
    large.check_whole()
    if name == "FedBuff":
        assert in_place


@pytest.mark.parametrize("seconds", [0.0, 3.0, 1e9])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_server_that_crashes_goes_on(live_run, all_large, name, seconds):
    all_large()
    checkpoints = CheckpointPolicy(seconds=seconds)
    live = live_run(strategy=STRATEGIES[name], budget=Budget(updates=40), checkpoints=checkpoints)
    play(live, crashes=(3, 9, 10, 20))
    live.check_whole()


@pytest.mark.parametrize("name", ["mixing", "FedBuff", "mirrored"])
def test_a_server_killed_at_any_moment_loses_and_repeats_nothing(live_run, all_large, name):
    all_large()
    live_run(strategy=STRATEGIES[name]).play()  # loads the kernels
    checkpoints = CheckpointPolicy(seconds=5.0)
    live = live_run(strategy=STRATEGIES[name], budget=Budget(updates=600), checkpoints=checkpoints)
    live.commit()
    chance, before = np.random.default_rng(4), 0
    for kill in range(40):
        if kill >= 10 and before > 5:  # on a busy machine a life may be too short for a merge
            break
        acknowledged = merge_until_killed(live, kill, chance)
        live.crash()
        live.commit()
        assert live.session.state.updates >= max(acknowledged, before)
        before = live.session.state.updates
    assert before > 5
    live.play()
    live.check_whole()


@pytest.mark.parametrize("lost", [[5], [2, 5], [0]])
def test_after_a_loss_of_power_the_run_goes_on_before_the_first_commit_that_is_not_whole(live_run, all_large, lost):
    """The run's file has all commits, the file beside it not all that was sent with them."""
    all_large()
    live = live_run(strategy=STRATEGIES["FedBuff"], budget=Budget(updates=40))
    live.commit()
    tickets = []
    for _ in range(6):
        tickets.append(min(live.held))
        live.answer(tickets[-1])
        live.commit()
    places = dict(
        live.journal._connection.execute("SELECT ticket, place FROM sent_arrays JOIN arrays ON sent_arrays.array = id")
    )
    with live.path.with_name(live.path.name + "-sent").open("r+b") as file:
        for number in lost:
            file.seek(places[tickets[number]])
            file.write(bytes(16))
    live.crash()
    assert [event.ticket for event in live.events("report")] == tickets[: min(lost)]
    live.commit()
    live.play()
    live.check_whole()


def test_a_checkpoint_of_large_models_waits_for_four_times_its_bytes(live_run, all_large):
    all_large()
    policy = CheckpointPolicy(seconds=0.0, small_bytes=0)
    live = live_run(strategy=STRATEGIES["mixing"], budget=Budget(updates=200), checkpoints=policy)
    live.commit()
    since, saved = [0], live.session._saved_at
    for _ in range(150):
        live.answer(min(live.held))
        live.commit()
        since.append(since[-1] + 88)
        if live.session._saved_at != saved:
            saved = live.session._saved_at
            assert since[-1] >= 4 * 88 * 3
            since.append(0)
    assert since.count(0) > 3
