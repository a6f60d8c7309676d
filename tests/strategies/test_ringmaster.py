"""Ringmaster ASGD: a trace by hand, its two limits, what it never merges, and that a run of it can be trusted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Cancel, Dispatch, Merge, Report, Work
from asyncfed.delays import Delays, Device, Exponential
from asyncfed.strategies import AFL, AsyncSGD, Ringmaster
from asyncfed.strategies.schedules import ConstantRate

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
DELAYS = Delays(compute=Exponential(mean=1.0), dropout=0.05, devices=(Device(name="slow", share=0.4, slowness=6.0),))
HUGE = 10**9


def test_by_hand(hand_run):
    run = hand_run(Ringmaster(concurrency=3, staleness_threshold=2, server_lr=0.5))
    # All hold version 0; R = 2.
    assert run.arrive(0, 4.0) == (0, "merge", 2.0)  # 0 + 4/2; v = 1; clients 1 and 2 are 1 old: they go on
    assert run.start_of(0) == 2.0
    assert run.start_of(1) == 0.0
    # 2 + 8/2; v = 2. Client 2 is now 2 old: it begins anew, from 6. Client 0 (v 1) is 1 old.
    assert run.arrive(1, 8.0) == (1, "merge cancel", 6.0)
    assert [run.start_of(client) for client in range(3)] == [2.0, 6.0, 6.0]
    assert run.arrive(2, 6.0) == (0, "merge cancel", 6.0)  # 6 + 0/2; v = 3; client 0 was 2 old
    assert run.server.round == 1
    assert [run.start_of(client) for client in range(3)] == [6.0, 6.0, 6.0]
    assert run.arrive(1, 10.0) == (1, "merge", 8.0)  # 6 + 4/2; v = 4
    assert run.server.version == 4


def test_by_hand_without_stops(hand_run):
    run = hand_run(Ringmaster(concurrency=3, staleness_threshold=2, stops=False))
    assert run.arrive(0, 4.0) == (0, "merge", 4.0)
    assert run.arrive(1, 8.0) == (1, "merge", 12.0)
    assert run.arrive(2, 100.0) == (2, "drop", 12.0)  # 2 is not below 2
    assert run.start_of(2) == 12.0
    assert run.arrive(0, 5.0) == (1, "merge", 13.0)


@pytest.mark.parametrize("stops", [True, False])
def test_with_a_huge_threshold_it_is_plain_asynchronous_sgd(tiny, stops):
    plain = AFL(concurrency=4, aggregate="delta_sum", work=WORK, schedule=ConstantRate())
    ringmaster = Ringmaster(concurrency=4, staleness_threshold=HUGE, stops=stops, work=WORK)
    runs = [
        af.run(tiny(clients=6, strategy=s, delays=DELAYS, budget=Budget(updates=80), init="torch"))
        for s in (plain, ringmaster, AsyncSGD(concurrency=4, work=WORK))
    ]
    for run in runs[1:]:
        assert run.sha256 == runs[0].sha256
        assert run.params.tobytes() == runs[0].params.tobytes()


def test_with_a_threshold_of_one_it_is_sequential_sgd(tiny, events):
    experiment = tiny(
        clients=5,
        strategy=Ringmaster(concurrency=5, staleness_threshold=1, work=WORK),
        delays=Delays(compute=Exponential(mean=1.0)),
        budget=Budget(updates=40),
    )
    run = af.run(experiment)
    assert run.rounds["staleness_max"].tolist() == [0] * len(run.rounds["round"])
    versions = {e.ticket: e.version for e in events(run, "dispatch")}
    merges = events(run, "merge")
    assert [versions[e.ticket] for e in merges] == list(range(40))  # each begins from the result of the one before
    assert len(events(run, "cancel")) == 39 * 4  # the last merge ends the run before its cancels
    problem, key = experiment.problem(), purpose_key(0, "train")
    x = problem.init(0)
    for merge in merges:
        trained = problem.local_train(x, merge.client, WORK, draw_key(key, merge.client, merge.ticket))
        x = x + (trained - x)
    assert run.params.tobytes() == x.tobytes()


@given(seed=st.integers(0, 10_000), limit=st.integers(1, 6), concurrency=st.integers(1, 6), stops=st.booleans())
@settings(max_examples=60, deadline=None)
def test_merged_staleness_is_below_the_threshold_and_with_stops_nothing_old_is_out(seed, limit, concurrency, stops):
    strategy = Ringmaster(concurrency=concurrency, staleness_threshold=limit, stops=stops)
    server = Server(strategy, [1] * 6, seed)
    server.start()
    chance, dropped = Stream(purpose_key(seed, "order")), 0
    for _ in range(80):
        tickets = list(server.outstanding)
        dispatch = server.outstanding[tickets[chance.below(len(tickets))]]
        staleness = server.version - dispatch.base_version
        outputs = server.receive(Report(dispatch.ticket, dispatch.client, 0.0, 1.0, 1))
        merged = any(isinstance(output, Merge) for output in outputs)
        assert merged == (staleness < limit)
        dropped += not merged
        assert len(server.outstanding) == concurrency
        given_up = [output.ticket for output in outputs if isinstance(output, Cancel)]
        anew = [output.client for output in outputs if isinstance(output, Dispatch)]
        assert len(anew) == len(given_up) + 1
        if stops:
            assert all(server.version - d.base_version < limit for d in server.outstanding.values())
    assert not (stops and dropped)


def test_what_is_not_a_threshold_or_a_step_is_refused():
    with pytest.raises(ConfigError, match=r"strategy\.staleness_threshold is 0; it must be at least 1 version"):
        Ringmaster(staleness_threshold=0)
    with pytest.raises(ConfigError, match=r"strategy\.server_lr is 0; it must be a positive number"):
        Ringmaster(server_lr=0)


@pytest.mark.parametrize("stops", [True, False])
def test_threads_interruptions_and_replay(tiny, trusted, stops):
    strategy = Ringmaster(concurrency=5, staleness_threshold=3, stops=stops, work=WORK)
    run = trusted(tiny(clients=8, strategy=strategy, delays=DELAYS, budget=Budget(updates=90), init="torch"))
    assert run.rounds["staleness_max"].max() == 2
