"""Live runs whose tasks bring more than the model, or whose results are no models: without processes, with crashes."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.live.test_session import STEPS, step_through
from tests.live.tiny_parts import Corrected, Impatient, SendIf, Shaken

from asyncfed import uplinks
from asyncfed.core.types import Budget, Work
from asyncfed.live.checks import Limits
from asyncfed.live.session import Accepted, CheckpointPolicy, Refusal
from asyncfed.rules import Adam, FedDyn, Optimised, Scaffold, TableMean
from asyncfed.store.loss_reasons import MODEL_LOST
from asyncfed.strategies import ACE, ASOFed, FedAsync, FedAvg, FedBuff, PublishedScripts
from asyncfed.uplinks import QSGD, ErrorFeedback, LowRank, RandK, Sign, TopK, Zstandard
from asyncfed.uplinks.client_memory import ClientMemory

BASE = {"epochs": 1, "batch_size": 4, "learning_rate": 0.01}
SPARSE = Work(**BASE, uplink=(ErrorFeedback(codec=TopK(fraction=0.2)),))
MIRRORED = Work(**BASE, uplink=(uplinks.EF21(codec=TopK(fraction=0.2)),))
SILENT = Work(**BASE, uplink=(uplinks.SendIf(codec=TopK(fraction=0.5), threshold=1.5, at_most=3),))


def fedbuff(work, **how):
    return FedBuff(concurrency=3, buffer_size=2, work=work, **how)


STRATEGIES = {
    "error feedback": fedbuff(SPARSE),
    "top k": fedbuff(Work(**BASE, uplink=(TopK(fraction=0.2),))),
    "rand k": fedbuff(Work(**BASE, uplink=(ErrorFeedback(codec=RandK(fraction=0.2, scaled=False)),))),
    "levels": fedbuff(Work(**BASE, uplink=(QSGD(),))),
    "low rank": fedbuff(Work(**BASE, uplink=(ErrorFeedback(codec=LowRank(rank=1, shapes=((5, 2), (1,)))),))),
    "zstandard": fedbuff(Work(**BASE, uplink=(Zstandard(codec=Sign()),))),
    "unknown size": fedbuff(Work(**BASE, uplink=(SendIf(),))),
    "two uplinks": fedbuff(Work(**BASE, uplink=(ErrorFeedback(codec=TopK(fraction=0.5)), SendIf()))),
    "ef21": ACE(concurrency=3, work=MIRRORED),
    "own start, ef21": PublishedScripts(cohort_size=2, work=Work(**BASE, start="own", uplink=MIRRORED.uplink)),
    "downlink": fedbuff(Work(**BASE, downlink=TopK(fraction=0.3))),
    "downlink and ef21": ACE(concurrency=3, work=Work(**BASE, uplink=MIRRORED.uplink, downlink=TopK(fraction=0.3))),
    "downlink, send if": FedAsync(concurrency=2, work=Work(**BASE, uplink=SILENT.uplink, downlink=uplinks.QSGD())),
    "send if": fedbuff(SILENT),
    "mixing, send if": FedAsync(concurrency=2, work=SILENT),
    "own start, send if": PublishedScripts(cohort_size=2, work=Work(**BASE, start="own", uplink=SILENT.uplink)),
    "correction": fedbuff(Work(**BASE), rule=Corrected()),
    "scaffold": fedbuff(Work(**BASE), rule=Scaffold()),
    "scaffold by steps": FedAvg(cohort_size=3, work=Work(**BASE, steps=3), rule=Scaffold()),
    "a table and a warm-up": ACE(concurrency=3, work=Work(**BASE), rule=TableMean(max_age=4)),
    "feddyn": FedAvg(cohort_size=3, work=Work(**BASE, proximal=0.5), rule=FedDyn()),
    "aso-fed": ASOFed(concurrency=3, work=Work(**BASE, proximal=0.01)),
    "adam": fedbuff(SPARSE, rule=Optimised(optimiser=Adam())),
    "correction and uplink": fedbuff(SPARSE, rule=Corrected()),
    "patience": FedAsync(concurrency=2, work=Work(epochs=9, batch_size=4, learning_rate=0.08, patience=1)),
    "losses": fedbuff(Work(**BASE, loss=True, start_loss=True, start_rms=True)),
    "noise": fedbuff(Work(**BASE), rule=Shaken()),
    "own start": PublishedScripts(cohort_size=2, work=Work(**BASE, start="own")),
    "own start and uplink": PublishedScripts(cohort_size=2, work=Work(**BASE, start="own", uplink=SPARSE.uplink)),
    "timers and cancels": Impatient(),
}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("seconds", [0.0, 4.0, 1e9])
def test_it_replays_to_the_same_model_also_after_crashes_and_lost_memories(live_run, strategy, seconds):
    budget = Budget(rounds=12)
    live = live_run(strategy=strategy, checkpoints=CheckpointPolicy(seconds=seconds), budget=budget, init="torch")
    live.commit()
    chance = np.random.default_rng(1)
    while not live.session.finished:
        live.session.expire(live.now)
        live.commit()
        if live.held:
            client = live.held[ticket := int(chance.choice(list(live.held)))].client
            if chance.random() < 0.2:
                live.memories[client] = ClientMemory()  # its process was killed and started again
            outcome = live.answer(ticket)
            assert outcome == Accepted(ticket) or outcome.reason == MODEL_LOST
            live.commit()
        if chance.random() < 0.2:
            live.crash()
            live.commit()
    live.check_whole()


# ---- uplinks and their memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["error feedback", "correction", "correction and uplink", "unknown size", "send if", "downlink", "own start"],
)
def test_the_ledger_counts_the_bytes_of_the_bodies(live_run, name):
    live = live_run(strategy=STRATEGIES[name], budget=Budget(rounds=6))
    live.play()
    ledger = live.session._execution.ledger
    assert (ledger.bytes_down, ledger.bytes_up) == (live.bytes_down, live.bytes_up)
    if name == "own start":
        assert live.bytes_down == 0


def test_a_client_that_has_lost_its_memory_says_so_and_begins_anew(live_run):
    live = live_run(strategy=fedbuff(SPARSE), budget=Budget(updates=20), num_clients=3)
    live.commit()
    forgetful = live.held[0].client
    live.answer(0)
    live.commit()
    (ticket,) = [t for t, dispatch in live.held.items() if dispatch.client == forgetful]
    assert (live.tasks[ticket][0].memory, live.held[ticket].memory) == (0, 0)
    live.memories[forgetful] = ClientMemory()
    assert live.result(ticket)[0].memory == -1
    live.answer(ticket)
    live.commit()
    live.play()
    told = {event.ticket: event.memory for event in live.events("report")}
    assert told[ticket] == -1
    assert all(memory is None for t, memory in told.items() if t != ticket)  # as they had been told
    live.check_whole()


def test_a_client_that_lost_the_model_of_a_difference_says_so_and_is_sent_the_whole(live_run):
    live = live_run(strategy=STRATEGIES["downlink"], budget=Budget(updates=20), num_clients=3)
    live.commit()
    assert list(live.tasks[0][1]) == ["model"]
    client = live.held[0].client
    live.answer(0)
    live.commit()
    (ticket,) = [t for t, dispatch in live.held.items() if dispatch.client == client]
    assert {name.split("/")[0] for name in live.tasks[ticket][1]} == {"downlink"}
    live.memories[client] = ClientMemory()
    result, sent = live.result(ticket)
    assert (result.memory, sent) == (-1, {})
    assert live.answer(ticket) == Refusal(MODEL_LOST, is_fault=False)
    live.commit()
    live.crash()
    live.commit()
    (ticket,) = [t for t, dispatch in live.held.items() if dispatch.client == client]
    assert (live.held[ticket].memory, list(live.tasks[ticket][1])) == (-1, ["model"])
    assert not live.events("refused")
    live.play()
    live.check_whole()


@pytest.mark.parametrize("name", ["downlink", "downlink and ef21", "downlink, send if"])
def test_client_and_server_know_the_same_start_and_estimate(live_run, name):
    live = live_run(strategy=STRATEGIES[name], budget=Budget(updates=25))
    live.commit()
    chance = np.random.default_rng(0)
    while not live.session.finished:
        ticket = int(chance.choice(list(live.held)))
        client, vectors = live.held[ticket].client, live.session._execution.vectors
        start = vectors.starts[ticket].tobytes()
        live.answer(ticket)
        kept = live.memories[client].of_ticket.get(ticket)
        if kept is not None:
            assert kept["start"].tobytes() == start
            mirror = live.session._execution.vectors.mirrors[client].of_ticket[ticket]
            assert mirror["downlink/start"].tobytes() == start
            if "0/state" in kept:
                assert kept["0/state"].tobytes() == mirror["state"].tobytes()
        live.commit()
        if chance.random() < 0.2:
            live.crash()
            live.commit()
    live.check_whole()


def test_a_refused_or_lost_update_does_not_advance_the_memory(live_run):
    live = live_run(strategy=fedbuff(SPARSE), budget=Budget(updates=20), num_clients=3, limits=Limits(faults=9))
    live.commit()
    client = live.held[0].client
    live.answer(0)
    live.commit()
    for attempt in range(3):
        ticket = max(t for t, dispatch in live.held.items() if dispatch.client == client)
        assert live.tasks[ticket][0].memory == 0
        live.result(ticket)  # it is worked on
        if attempt == 0:
            assert isinstance(live.answer(ticket, duration=-1.0), Refusal)
        elif attempt == 1:
            live.session.lose(ticket, "a test", live.now)
        live.commit()
    live.crash()
    live.play()
    assert not [event for event in live.events("report") if event.memory is not None]
    live.check_whole()


def test_a_client_with_nothing_worth_sending_says_so_and_keeps_its_change(live_run):
    work = Work(
        **BASE, uplink=(uplinks.SendIf(codec=TopK(fraction=1.0), threshold=1e9, measure="absolute", at_most=2),)
    )
    live = live_run(strategy=FedAsync(concurrency=1, work=work), budget=Budget(updates=2), num_clients=1)
    live.commit()
    before = live.session.state.params.tobytes()
    result, sent = live.result(0)
    assert (sent, result.parts) == ({}, ())
    assert live.answer(0) == Accepted(0)
    live.commit()
    live.crash()
    live.commit()
    assert live.session.state.params.tobytes() == before
    (skip,) = live.events("skipped")
    assert (skip.ticket, skip.client, skip.duration, skip.energy, skip.memory) == (0, 0, 1.0, 0.0, None)
    ticket = max(live.held)
    assert live.tasks[ticket][0].memory == 0  # what it kept counts
    live.play()
    live.check_whole()
    assert live.session.skipped >= 2


def test_an_empty_message_where_one_of_known_size_is_due_is_a_fault(live_run):
    live = live_run(strategy=fedbuff(SPARSE))
    live.commit()
    assert live.answer(0, arrays={}).is_fault


LIES = {
    "used the memory of ticket 77": {"memory": 77},
    "its message has 0 bytes; 26 are due": {"arrays": {}},
    "its message has 88 bytes": {"params": np.zeros(11)},
    "cannot be decoded": {"arrays": {"nonsense": np.zeros(26, np.uint8)}},
    "not finite": {"arrays": {"indices": np.array([7, 0], np.uint8), "values": np.full(3, np.inf)}},
}


@pytest.mark.parametrize(("words", "lie"), LIES.items(), ids=LIES)
def test_a_lie_about_a_message_is_the_clients_fault(live_run, words, lie):
    live = live_run(strategy=fedbuff(SPARSE))
    live.commit()
    refusal = live.answer(0, **lie)
    assert refusal.is_fault
    assert words in refusal.reason
    live.commit()
    assert [row.ticket for row in live.events("lost")] == [0]
    live.play()
    live.check_whole()


def test_what_the_server_cannot_read_is_limited_by_what_uplinks_declare(live_run):
    assert live_run().session.max_result_bytes == 88
    assert live_run(strategy=fedbuff(SPARSE)).session.max_result_bytes == 26
    assert live_run(strategy=STRATEGIES["unknown size"]).session.max_result_bytes == 2 * 88 + 4096


def test_a_client_that_lost_its_own_model_starts_from_its_first_draw(live_run):
    work = Work(**BASE, start="own")
    live = live_run(strategy=PublishedScripts(cohort_size=4, work=work), init="torch", budget=Budget(rounds=3))
    live.commit()
    for ticket in range(4):
        live.answer(ticket)
    live.commit()
    ticket = min(live.held)
    client = live.held[ticket].client
    live.memories[client] = ClientMemory()
    (result, sent), task = live.result(ticket), live.tasks[ticket]
    assert (result.memory, task[1]) == (-1, {})
    first = live.problem.init(live.plan.seed, client=client, how="torch")
    again = live.problem.local_train(first, client, task[0].work, task[0].key)
    assert sent["model"].tobytes() == again.tobytes()
    live.play()
    live.check_whole()


# ---- rules -----------------------------------------------------------------------------------------------------------


def test_the_session_says_whether_tasks_bring_corrections(live_run):
    said = {name: live_run(strategy=strategy).session.sends_corrections() for name, strategy in STRATEGIES.items()}
    assert {name for name, sends in said.items() if sends} == {
        *("correction", "correction and uplink", "scaffold", "scaffold by steps", "feddyn", "aso-fed")
    }


def test_a_task_brings_the_correction(live_run):
    live = live_run(strategy=STRATEGIES["correction"])
    live.commit()
    task, arrays = live.tasks[0]
    assert [part.name for part in task.parts] == list(arrays) == ["model", "correction"]
    assert task.memory is not None  # UNSET
    live.play()
    assert all("length" in event.metrics for event in live.events("report"))


def test_noise_comes_from_the_machine_and_its_key_is_in_the_journal(live_run):
    ends = []
    for _ in range(2):
        live = live_run(strategy=STRATEGIES["noise"])
        live.play()
        live.check_whole()
        keys = [json.loads(event.detail)["info"]["noise_key"] for event in live.events("merge")]
        assert all(len(bytes.fromhex(key)) == 32 for key in keys)
        assert len(set(keys)) == len(keys)
        ends.append((keys, live.session.state.params.tobytes()))
    assert not set(ends[0][0]) & set(ends[1][0])
    assert ends[0][1] != ends[1][1]


# ---- timers and cancels ----------------------------------------------------------------------------------------------


def test_timers_run_out_when_their_time_has_come_also_after_a_crash(live_run):
    live = live_run(strategy=Impatient(seconds=3.0), budget=Budget(updates=30))
    live.commit()
    assert live.session.next_timer == 3.0
    live.session.expire(2.9)
    assert live.session._timers == [(3.0, 7)]
    live.now = 3.5
    live.session.expire(live.now)
    live.commit()
    assert [(event.time, event.timer) for event in live.events("wake")] == [(3.5, 7)]
    assert live.session.next_timer == 6.5
    live.crash()
    assert live.session.next_timer == 6.5
    live.now = 20.0
    live.session.expire(live.now)  # late, and once
    live.commit()
    assert [event.time for event in live.events("wake")] == [3.5, 20.0]
    live.play()
    live.check_whole()


def test_a_cancelled_ticket_is_closed_its_client_gets_another_and_a_late_answer_is_no_fault(live_run):
    live = live_run(strategy=Impatient(seconds=3.0), budget=Budget(updates=30))
    live.commit()
    client, (result, arrays) = live.held[0].client, live.result(0)
    live.session.expire(3.5)
    live.now = 3.5
    dispatches = live.session.commit(live.now)
    assert [dispatch.ticket for dispatch in live.session.take_cancelled()] == [0]
    assert live.session.take_cancelled() == []
    assert [(dispatch.client, dispatch.ticket) for dispatch in dispatches] == [(client, 2)]
    (cancel,) = live.events("cancel")
    assert (cancel.ticket, cancel.duration, cancel.energy, cancel.reason) == (0, 3.5, 0.0, "too slow")
    late = live.session.accept(client, result, arrays, 4.0)
    assert late == Refusal("its ticket had been given up", is_fault=False)
    assert live.session._records.faults == {}
    live.crash()
    live.play()
    live.check_whole()


# ---- whatever happens ------------------------------------------------------------------------------------------------


ANYTHING = ["error feedback", "send if", "ef21", "downlink and ef21", "correction and uplink", "noise", "own start"]
ANYTHING += ["downlink, send if", "timers and cancels"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=STEPS,
    name=st.sampled_from(ANYTHING),
    seed=st.integers(0, 100),
    seconds=st.sampled_from([0.0, 3.0, 1e9]),
)
def test_whatever_happens_nothing_is_lost_or_merged_twice(live_run, steps, name, seed, seconds):
    how = {"strategy": STRATEGIES[name], "budget": Budget(updates=20), "init": "torch"}
    live = live_run(limits=Limits(faults=1000), checkpoints=CheckpointPolicy(seconds=seconds), **how)
    chance = np.random.default_rng(seed)
    live.commit()
    for step in steps:
        if live.session.finished:
            break
        if chance.random() < 0.1:
            live.memories[int(chance.integers(4))] = ClientMemory()
        live.session.expire(live.now)
        step_through(live, step, chance)
        if step == "crash":
            live.commit()
    for client in range(4):
        live.session.join(client, live.now)
    live.crash()
    live.play()
    live.check_whole()
