"""AsGrad: traces by hand, who is assigned what in each order, whose data are trained on, and waiting for b."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.record import replace
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Dispatch, Merge, Report, Work
from asyncfed.data import ConceptShift, PaperRegression
from asyncfed.delays import Delays, Device, Exponential
from asyncfed.problems import LinearModel
from asyncfed.strategies import AsGrad, AsyncSGD, DelayAdaptive
from asyncfed.testing import check_strategy

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
ORDERS = ("pure", "random", "shuffled")
SPEEDS = Delays(compute=Exponential(mean=1.0), devices=(Device(name="slow", share=0.4, slowness=8.0),))


def test_pure_by_hand(hand_run):
    run = hand_run(AsGrad(concurrency=3, order="pure", server_lr=0.5))
    assert run.arrive(1, 4.0) == (0, "merge", 2.0)
    assert run.start_of(1) == 2.0  # the same worker, with the new model
    assert run.arrive(0, 2.0) == (1, "merge", 3.0)
    assert run.arrive(1, 4.0) == (1, "merge", 4.0)  # 3 + (4 - 2)/2
    assert run.server.round == 1
    assert [run.start_of(client) for client in range(3)] == [3.0, 4.0, 0.0]


def test_pure_by_hand_waiting_for_two(hand_run):
    run = hand_run(AsGrad(concurrency=3, order="pure", wait_for=2))
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)
    assert sorted(d.client for d in run.server.outstanding.values()) == [1, 2]  # 0 waits
    assert run.arrive(2, 8.0) == (0, "merge", 6.0)  # the mean of 4 and 8
    assert [run.start_of(client) for client in range(3)] == [6.0, 0.0, 6.0]
    assert run.arrive(1, 2.0) == (1, "hold", 6.0)
    assert run.lose(0) == ("hold", 6.0)  # it begins anew, and 1 goes on waiting
    assert sorted(d.client for d in run.server.outstanding.values()) == [0, 2]
    assert run.arrive(0, 8.0) == (0, "merge", 8.0)  # 6 + (2 + 2)/2; it began from 6 again
    assert run.server.round == 1


def test_what_waits_is_merged_when_nobody_is_left(hand_run):
    run = hand_run(AsGrad(concurrency=2, order="pure", wait_for=2), num_examples=(1, 1))
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)
    assert run.leave(1) == ("merge", 4.0)
    assert run.arrive(0, 5.0) == (0, "merge", 5.0)


def test_with_equal_speeds_pure_is_round_robin(tiny, events):
    """And the same as asynchronous SGD with everybody at work, to the last bit."""
    strategies = AsGrad(concurrency=5, order="pure", work=WORK), AsyncSGD(concurrency=5, work=WORK)
    runs = [af.run(tiny(clients=5, strategy=s, budget=Budget(updates=30), init="torch")) for s in strategies]
    merged = [event.client for event in events(runs[0], "merge")]
    assert sorted(merged[:5]) == [0, 1, 2, 3, 4]
    assert merged == merged[:5] * 6
    assert runs[0].params.tobytes() == runs[1].params.tobytes()


def drive(order, seed, arrivals, num_clients=4, concurrency=4, wait_for=1):
    """All clients that tickets went to, in that order, and all whose reports were merged; tickets are done in turn."""
    server = Server(AsGrad(concurrency=concurrency, order=order, wait_for=wait_for), [1] * num_clients, seed)
    assigned, merged = [output.client for output in server.start()], []
    chance, client_of = Stream(purpose_key(seed, "order")), {}
    for _ in range(arrivals):
        firsts = {}
        for ticket, dispatch in server.outstanding.items():
            firsts.setdefault(dispatch.client, ticket)  # a client works on its tickets one after another
        speeds = [client for client in firsts for _ in range(1 + 3 * (client % 2))]  # odd ones are faster
        client = speeds[chance.below(len(speeds))]
        client_of[firsts[client]] = client
        for output in server.receive(Report(firsts[client], client, 0.0, 1.0, 1)):
            if isinstance(output, Dispatch):
                assigned.append(output.client)
            elif isinstance(output, Merge):
                merged += [client_of[ticket] for ticket in output.tickets]
    return assigned, merged


@given(seed=st.integers(0, 1000), concurrency=st.integers(1, 7), wait_for=st.integers(1, 3))
@settings(max_examples=25)
def test_shuffled_assigns_each_worker_once_in_every_n(seed, concurrency, wait_for):
    assigned, _ = drive("shuffled", seed, 40, concurrency=concurrency, wait_for=min(wait_for, concurrency))
    for start in range(0, len(assigned) - 3, 4):
        assert sorted(assigned[start : start + 4]) == [0, 1, 2, 3]


@pytest.mark.parametrize("order", ORDERS)
def test_all_workers_begin(order):
    assigned, _ = drive(order, 3, 0)
    assert sorted(assigned) == [0, 1, 2, 3]


def test_who_is_heard():
    """Fast workers more often in pure; everybody as often in the other orders, whatever the speeds."""
    counts = {order: Counter(drive(order, 5, 1200)[1]) for order in ORDERS}
    assert counts["pure"][1] > 2 * counts["pure"][0]
    assert max(counts["shuffled"].values()) - min(counts["shuffled"].values()) <= 5  # what is out, and a cycle
    assert all(abs(counts["random"][client] - 300) < 60 for client in range(4))  # 4 standard deviations of 15


@pytest.mark.parametrize("order", ORDERS)
def test_a_ticket_is_trained_on_the_data_of_its_own_client(tiny, events, order):
    strategy = AsGrad(concurrency=4, order=order, work=WORK)
    experiment = tiny(clients=4, strategy=strategy, delays=SPEEDS, budget=Budget(updates=40))
    run = af.run(experiment)
    problem, key = experiment.problem(), purpose_key(0, "train")
    x, starts, waits = problem.init(0), {}, 0
    for event in events(run, "dispatch", "merge"):
        if event.kind == "dispatch":
            starts[event.ticket] = x
        else:
            start = starts.pop(event.ticket)
            trained = problem.local_train(start, event.client, WORK, draw_key(key, event.client, event.ticket))
            x = x + (trained - start)
            waits += 1
    assert waits == 40
    np.testing.assert_allclose(run.params, x, rtol=1e-12)


@pytest.mark.slow
def test_with_small_steps_the_orders_that_hear_everybody_reach_the_optimum_and_others_do_not():
    """Clients with models of their own, half of them eight times slower. At four times the rate all are 0.2 or more."""

    def distance(strategy):
        experiment = af.Experiment(
            num_clients=6,
            data=PaperRegression(num_samples=240),
            split=ConceptShift(),
            model=LinearModel(l2=0.01),
            strategy=replace(strategy, work=Work(batch_size=10**6, learning_rate=0.0125)),
            delays=Delays(compute=Exponential(mean=1.0), devices=(Device(name="slow", share=0.5, slowness=8.0),)),
            budget=Budget(updates=24_000),
        )
        optimum = experiment.problem().optimum()
        return np.linalg.norm(af.run(experiment, threads=1).params - optimum) / np.linalg.norm(optimum)

    assert distance(AsGrad(concurrency=6, order="random")) < 0.1
    assert distance(AsGrad(concurrency=6, order="shuffled")) < 0.1
    assert distance(AsGrad(concurrency=6, order="pure")) > 0.15
    assert distance(DelayAdaptive(concurrency=6)) > 0.15


@pytest.mark.parametrize(("order", "wait_for", "clients"), [("pure", 2, 5), ("pure", 3, 3), ("shuffled", 2, 4)])
def test_it_passes_the_check_when_it_waits(order, wait_for, clients):
    check_strategy(AsGrad(concurrency=3, order=order, wait_for=wait_for), num_clients=clients)


def test_threads_interruptions_and_replay(tiny, trusted):
    delays = Delays(compute=Exponential(mean=1.0), dropout=0.05)
    strategy = AsGrad(concurrency=4, order="shuffled", wait_for=2, work=WORK)
    trusted(tiny(clients=6, strategy=strategy, delays=delays, budget=Budget(updates=40)))


def test_bad_settings_are_refused():
    with pytest.raises(
        ConfigError, match=r"strategy\.wait_for is 0; with 5 tickets out at once it must be from 1 to 5"
    ):
        AsGrad(wait_for=0)
    with pytest.raises(ConfigError, match=r"strategy\.wait_for is 3; with 2 tickets"):
        AsGrad(concurrency=2, wait_for=3)
    with pytest.raises(ConfigError, match=r"strategy\.server_lr is 0; it must be a positive number"):
        AsGrad(server_lr=0)
    with pytest.raises(ConfigError, match=r"strategy\.concurrency is 5, but there are only 4 clients"):
        AsGrad(order="pure").check(4)
    AsGrad(order="random").check(4)  # busy clients queue
