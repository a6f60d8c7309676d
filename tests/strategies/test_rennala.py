"""Rennala SGD: a trace by hand, its limits, staleness 0 whatever happens, and that a run of it can be trusted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Merge, Report, Work
from asyncfed.delays import Delays, Device, Exponential, FunctionDelays
from asyncfed.strategies import Rennala

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
DELAYS = Delays(compute=Exponential(mean=1.0), dropout=0.05, devices=(Device(name="slow", share=0.4, slowness=6.0),))


def test_by_hand(hand_run):
    run = hand_run(Rennala(changes_per_step=3, server_lr=0.75))
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)
    assert run.start_of(0) == 0.0  # it computes again at the same model
    assert run.arrive(0, 6.0) == (0, "hold", 0.0)
    # 0.75 (4 + 6 + 2) / 3 = 3; tickets of 0 and 2 are out: they are stopped, and everybody begins at 3.
    assert run.arrive(1, 2.0) == (0, "merge cancel cancel", 3.0)
    assert [run.start_of(client) for client in range(3)] == [3.0, 3.0, 3.0]
    assert run.server.round == 1
    assert run.leave(2) == ("hold", 3.0)
    assert run.lose(1) == ("hold", 3.0)
    assert run.start_of(1) == 3.0  # it begins again
    run.arrive(1, 6.0)
    run.arrive(0, 3.0)
    assert run.join(2) == ("hold", 3.0)
    assert run.arrive(2, 8.0) == (0, "merge cancel cancel", 5.0)  # 3 + 0.75 (3 + 0 + 5) / 3


def test_with_one_change_per_step_it_is_sequential_sgd_by_the_fastest(tiny, events):
    experiment = tiny(
        clients=3,
        strategy=Rennala(changes_per_step=1, work=WORK),
        budget=Budget(updates=20),
    )
    run = af.run(experiment, delays=FunctionDelays(lambda client, ticket, work: (3.0, 1.0, 2.5)[client]).bind(3, 0))
    merges = events(run, "merge")
    assert [(merge.client, merge.time) for merge in merges] == [(1, float(k)) for k in range(1, 21)]
    problem, key = experiment.problem(), purpose_key(0, "train")
    x = problem.init(0)
    for merge in merges:
        trained = problem.local_train(x, 1, WORK, draw_key(key, 1, merge.ticket))
        x = x + (trained - x)
    assert run.params.tobytes() == x.tobytes()


def test_with_equal_speeds_and_as_many_changes_as_clients_it_is_minibatch_sgd(tiny, events):
    clients, steps = 4, 10
    delays = FunctionDelays(lambda client, ticket, work: 1.0).bind(4, 0)
    strategy = Rennala(changes_per_step=clients, work=WORK)
    experiment = tiny(clients=clients, strategy=strategy, budget=Budget(rounds=steps))
    run = af.run(experiment, delays=delays)
    problem, key = experiment.problem(), purpose_key(0, "train")
    x, ticket = problem.init(0).astype(np.float64), 0
    for _ in range(steps):
        changes = []
        for client in range(clients):
            trained = problem.local_train(x, client, WORK, draw_key(key, client, ticket + client))
            changes.append(trained - x)
        x = x + np.mean(changes, axis=0)
        # Whoever reported before the last had begun again, and was stopped.
        ticket += 2 * clients - 1
    np.testing.assert_allclose(run.params, x, rtol=1e-12)
    assert events(run, "merge")[-1].time == steps


@given(seed=st.integers(0, 10_000), changes=st.integers(1, 7))
@settings(max_examples=15, deadline=None)
def test_staleness_is_zero_and_each_step_has_its_changes(seed, changes):
    server = Server(Rennala(changes_per_step=changes), [1] * 5, seed)
    chance, outputs = Stream(purpose_key(seed, "order")), server.start()
    base = {}
    for _ in range(80):
        for output in outputs:
            if isinstance(output, Merge):
                assert len(output.tickets) == changes
                assert sum(output.weights) == pytest.approx(1.0)
        base |= {ticket: d.base_version for ticket, d in server.outstanding.items()}
        assert all(d.base_version == server.version for d in server.outstanding.values())
        assert sorted(d.client for d in server.outstanding.values()) == sorted(server.clients)
        lot, away = chance.unit(), [c for c in range(5) if c not in server.clients]
        tickets = list(server.outstanding)
        if lot < 0.1 and len(server.clients) > 1:
            outputs = server.leave(next(iter(server.clients)))
        elif lot < 0.2 and away:
            outputs = server.join(away[0], 1)
        elif lot < 0.3:
            outputs = server.lose(tickets[chance.below(len(tickets))])
        else:
            dispatch = server.outstanding[tickets[chance.below(len(tickets))]]
            outputs = server.receive(Report(dispatch.ticket, dispatch.client, 0.0, 1.0, 1))


def test_what_is_no_batch_or_no_step_is_refused():
    with pytest.raises(ConfigError, match=r"strategy\.changes_per_step is 0; a step needs at least 1 change"):
        Rennala(changes_per_step=0)
    with pytest.raises(ConfigError, match=r"strategy\.server_lr is 0; it must be a positive number"):
        Rennala(server_lr=0)


def test_threads_interruptions_and_replay(tiny, trusted):
    strategy = Rennala(changes_per_step=3, work=WORK)
    run = trusted(tiny(clients=6, strategy=strategy, delays=DELAYS, budget=Budget(updates=60), init="torch"))
    assert run.rounds["staleness_max"].max() == 0
