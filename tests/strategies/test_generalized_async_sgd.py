"""Generalized AsyncSGD: a trace by hand, its limit AsyncSGD, unbiasedness, chances while clients come and go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.record import replace
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Merge, Report, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import AsyncSGD, GeneralizedAsyncSGD
from asyncfed.strategies.samplers import Fair, ShortestQueue, UniformAll, UniformIdle, Weighted
from asyncfed.testing import check_strategy


def drawn(*weights):
    return Weighted(weights=weights, busy="queue")


def reports(server, count, seed=0):
    """Reports in random order; each client's tickets first come, first served. Gives (client, weight) of the merges."""
    chance, merged = Stream(purpose_key(seed, "order")), []
    for _ in range(count):
        busy = sorted({dispatch.client for dispatch in server.outstanding.values()})
        client = busy[chance.below(len(busy))]
        ticket = next(t for t, d in server.outstanding.items() if d.client == client)
        for output in server.receive(Report(ticket, client, 0.0, 1.0, 1)):
            if isinstance(output, Merge):
                merged.append((client, output.weights[0]))
    return merged


def test_a_trace_by_hand(hand_run):
    """p = (1/4, 1/4, 1/2), n = 3: a change counts 0.75 / (n p) = 1, 1, 1/2. Client 2 holds up to two tickets."""
    run = hand_run(GeneralizedAsyncSGD(concurrency=3, server_lr=0.75, sampler=drawn(1.0, 1.0, 2.0)), seed=1)
    assert [d.client for d in run.server.outstanding.values()] == [1, 0, 2]
    assert run.report(0, 4.0) == (0, "merge", 4.0)  # client 1, from x = 0: 0 + 1 (4 - 0); ticket 3 for client 2, x = 4
    assert run.report(1, -2.0) == (1, "merge", 2.0)  # client 0, from 0: 4 + 1 (-2 - 0); ticket 4 for client 2, x = 2
    assert [d.client for d in run.server.outstanding.values()] == [2, 2, 2]  # two of the three wait in its queue
    assert run.report(2, 6.0) == (2, "merge", 5.0)  # client 2, from 0: 2 + 1/2 (6 - 0); ticket 5 for client 1, x = 5
    assert run.server.round == 1  # three updates are a round
    assert run.report(3, 8.0) == (2, "merge", 7.0)  # client 2, from 4: 5 + 1/2 (8 - 4)
    assert run.report(4, 0.0) == (2, "merge", 6.0)  # client 2, from 2: 7 + 1/2 (0 - 2)
    assert run.report(5, 4.0) == (2, "merge", 5.0)  # client 1, from 5: 6 + 1 (4 - 5)


def test_equal_chances_are_asynchronous_sgd_to_the_last_bit(tiny):
    for seed in range(3):
        settings = {"clients": 5, "delays": Delays(compute=Exponential(mean=1.0)), "budget": Budget(updates=60)}
        work = Work(epochs=1, batch_size=4, learning_rate=0.01)
        plain = AsyncSGD(concurrency=4, server_lr=0.3, sampler=UniformAll(), work=work)
        general = GeneralizedAsyncSGD(concurrency=4, server_lr=0.3, work=work)
        one = af.run(replace(tiny(strategy=plain, **settings), seed=seed), threads=1)
        other = af.run(replace(tiny(strategy=general, **settings), seed=seed), threads=1)
        assert one.params.tobytes() == other.params.tobytes()


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=6))
@settings(max_examples=25)
def test_the_mean_step_is_that_of_all_clients_with_equal_weights(weights):
    """Σ_i p_i weight_i g_i = (1/n) Σ_i g_i for any g: p_i weight_i is 1/n."""
    strategy, count = GeneralizedAsyncSGD(concurrency=2, server_lr=1.0, sampler=drawn(*weights)), len(weights)
    server = Server(strategy, [1] * count)
    server.start()
    seen = dict(reports(server, 25))
    chance = np.array(weights) / np.sum(weights)
    for client, weight in seen.items():
        assert chance[client] * weight == pytest.approx(1.0 / count, rel=1e-12)


def test_with_one_ticket_it_is_sgd_with_importance_sampling():
    """Every change is fresh, and clients come as often as they are drawn, whatever they take."""
    server = Server(GeneralizedAsyncSGD(concurrency=1, sampler=drawn(1.0, 1.0, 2.0)), [1] * 3)
    server.start()
    counts = np.zeros(3)
    for _ in range(1500):
        ((ticket, dispatch),) = server.outstanding.items()
        assert dispatch.base_version == server.version
        counts[dispatch.client] += 1
        server.receive(Report(ticket, dispatch.client, 0.0, 10.0**dispatch.client, 1))
    chance = np.array([0.25, 0.25, 0.5])
    assert np.all(np.abs(counts / 1500 - chance) < 4 * np.sqrt(chance * (1 - chance) / 1500))


def test_chances_follow_who_is_here():
    """Weights 1, 3, 8: without client 2 the chances are 1/4 and 3/4; a newcomer counts as the mean of the list, 4."""
    server = Server(GeneralizedAsyncSGD(concurrency=4, sampler=drawn(1.0, 3.0, 8.0)), [1] * 3)
    server.start()
    assert dict(reports(server, 40)) == pytest.approx({0: 4.0, 1: 4 / 3, 2: 0.5})
    server.leave(2)
    assert dict(reports(server, 40, seed=1)) == pytest.approx({0: 2.0, 1: 2 / 3})
    server.join(3, 1)
    assert dict(reports(server, 60, seed=2)) == pytest.approx({0: 8 / 3, 1: 8 / 9, 3: 2 / 3})


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [UniformAll(), drawn(1.0, 2.0, 9.0, 4.0, 0.1), ShortestQueue()])
def test_it_passes_the_check(sampler):
    check_strategy(GeneralizedAsyncSGD(concurrency=3, sampler=sampler), seed=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"server_lr": -1.0}, r"strategy.server_lr is -1.0; it must be a positive number"),
        ({"sampler": UniformIdle()}, "UniformIdle, which passes busy clients by"),
        ({"sampler": Fair()}, "Fair, which passes busy clients by"),
        ({"sampler": Weighted(weights=(1.0, 2.0))}, "Weighted, which passes busy clients by"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        GeneralizedAsyncSGD(**settings)


def test_a_client_that_is_never_drawn_is_refused():
    strategy = GeneralizedAsyncSGD(sampler=drawn(1.0, 0.0, 1.0))
    with pytest.raises(ConfigError, match=r"gives client 1 the weight 0\.0; its data would be missing"):
        strategy.check(3)
