"""FedFa: a trace by hand, one place in the queue, and as many as there are clients."""

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import AFL, FedFa
from asyncfed.strategies.schedules import ConstantRate

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def test_by_hand(ruled_hand_run):
    """K = 2, from 0: the model is the mean of the last two, whoever sent them."""
    run = ruled_hand_run(FedFa(concurrency=3, queue_size=2))
    assert run.arrive(0, [4.0])[1:] == ("merge", [2.0])  # (0 + 4)/2
    assert run.arrive(1, [6.0])[1:] == ("merge", [5.0])  # (4 + 6)/2
    assert run.arrive(0, [1.0])[1:] == ("merge", [4.5])  # 0 began from 2: its model is 3. (6 + 3)/2
    assert run.server.round == 1
    assert run.arrive(0, [0.5])[1:] == ("merge", [4.0])  # 4.5 + 0.5 = 5: (3 + 5)/2, client 0 twice
    assert {merge.weights for merge in run.merges} == {(0.5,)}


def test_with_one_place_each_arriving_model_is_the_model(ruled_hand_run):
    run = ruled_hand_run(FedFa(concurrency=3, queue_size=1))
    assert run.arrive(2, [4.0])[2] == [4.0]
    assert run.arrive(0, [1.0])[2] == [1.0]  # from 0, whatever came since
    assert run.arrive(2, [1.0])[2] == [5.0]


@pytest.mark.parametrize("clients", [1, 4])
def test_with_a_place_for_each_client_and_equal_speeds_it_is_the_mean_of_the_latest(tiny, clients):
    """All take a second, so they report in turn, and the oldest model in the queue is always one's own."""
    afl = AFL(concurrency=clients, aggregate="latest", work=WORK, schedule=ConstantRate())
    runs = [
        af.run(tiny(clients=clients, strategy=strategy, budget=Budget(updates=10 * clients + 3)))
        for strategy in (afl, FedFa(concurrency=clients, queue_size=clients, work=WORK))
    ]
    assert runs[1].params == pytest.approx(runs[0].params, rel=1e-12, abs=1e-13)


def test_threads_interruptions_and_replay(tiny, trusted):
    delays = Delays(compute=Exponential(mean=1.0), dropout=0.05)
    strategy = FedFa(concurrency=4, queue_size=3, work=WORK)
    trusted(tiny(clients=6, strategy=strategy, delays=delays, budget=Budget(updates=40)))


def test_no_place_is_refused():
    with pytest.raises(ConfigError, match=r"rule\.queue_size is 0; the queue holds at least 1 model"):
        FedFa(queue_size=0)
