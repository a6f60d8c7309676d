"""Aggregation every T seconds: a trace by hand, its limits AsyncSGD and FedAvg, empty periods, T from durations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Constant, Delays, Exponential
from asyncfed.strategies import AsyncSGD, FedAvg, Periodic
from asyncfed.strategies.discounts import NoDiscount, Polynomial
from asyncfed.strategies.samplers import ShuffledCycle, UniformAll
from asyncfed.testing import check_strategy

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
HALVING = Polynomial(power=1.0)  # s(0) = 1, s(1) = 1/2, s(2) = 1/3


def test_a_trace_by_hand(clock_run):
    """T = 4. Clients take 3, 4 and 9 s and add 8, 4 and 12."""
    run = clock_run(Periodic(concurrency=3, period=4.0, discount=HALVING), [3.0, 4.0, 9.0], [8.0, 4.0, 12.0])
    assert run.run(3.9).log == []  # client 0 is there since 3 s, and waits
    assert run.at_work() == [1, 2]
    assert run.run(4.0).log == [(4.0, "merge", [0, 1], 6.0)]  # 0 + (8 + 4) / 2; who arrives at 4 s belongs to it
    assert run.at_work() == [0, 1, 2]
    assert run.run(8.0).log[1:] == [(8.0, "merge", [0, 1], 12.0)]
    # Client 2 arrives at 9 s, begun from version 0; clients 0 and 1 at 11 and 12 s, from version 2.
    assert run.run(12.0).log[2:] == [(12.0, "merge", [2, 0, 1], pytest.approx(12.0 + (12.0 / 3 + 8.0 + 4.0) / 3))]
    assert run.server.round == run.server.version == 3


def test_clients_may_go_on_at_once(clock_run):
    """Client 0 takes 3 s: it is there at 3 s and goes on from x = 0, which is a version old when it ends."""
    strategy = Periodic(concurrency=1, period=4.0, discount=HALVING, restart="at_once")
    run = clock_run(strategy, [3.0], [8.0]).run(3.0)
    assert run.at_work() == [0]
    assert run.run(8.0).log == [(4.0, "merge", [0], 8.0), (8.0, "merge", [0], 8.0 + 8.0 / 2)]


def test_a_period_in_which_nothing_arrives_makes_no_version(clock_run):
    run = clock_run(Periodic(concurrency=1, period=1.0), [10.5], [2.0]).run(10.9)
    assert run.server.version == 0
    assert run.run(11.0).log == [(11.0, "merge", [0], 2.0)]
    assert run.run(22.0).log[1:] == [(22.0, "merge", [0], 4.0)]  # begun at 11, there at 21.5


def test_left_out_it_is_the_mean_of_the_first_durations(clock_run):
    run = clock_run(Periodic(concurrency=3, discount=NoDiscount()), [1.0, 2.0, 6.0], [3.0, 6.0, 9.0])
    assert run.run(6.0).log == [(6.0, "merge", [0, 1, 2], 6.0)]  # all are waited for: T = 3, counted from here
    assert run.run(9.0).log[1:] == [(9.0, "merge", [0, 1], 10.5)]
    assert run.run(12.0).log[2:] == [(12.0, "merge", [0, 1, 2], pytest.approx(10.5 + 18.0 / 3))]


def test_clients_come_and_go(clock_run):
    run = clock_run(Periodic(concurrency=2, discount=NoDiscount()), [1.0, 5.0], [2.0, 4.0]).run(1.0)
    run.leave(1)  # nobody is left but client 0, which waits for the merge: that need not wait, and T = 1
    assert run.run(1.0).log == [(1.0, "merge", [0], 2.0)]
    assert run.run(2.0).log[1:] == [(2.0, "merge", [0], 4.0)]
    run.leave(0)
    assert run.at_work() == []
    run.now = 7.5
    run.join(1, seconds=0.25, move=6.0)
    assert run.run(8.0).log[2:] == [(8.0, "merge", [1], 10.0)]  # there at 7.75; it waits although a place is free


def experiment(strategy, compute, updates=60):
    return af.Experiment(
        num_clients=4,
        data=af.data.PaperRegression(num_samples=40),
        strategy=strategy,
        delays=Delays(compute=compute),
        budget=Budget(updates=updates),
    )


def test_with_a_short_period_it_is_asynchronous_sgd():
    """Every update is merged by itself, and its client goes on from there: the same clients, tickets and model."""
    settings = {"concurrency": 4, "server_lr": 0.25, "work": WORK}
    one = af.run(experiment(AsyncSGD(**settings), Exponential(mean=1.0)), threads=1)
    short = Periodic(period=1e-9, discount=NoDiscount(), **settings)
    other = af.run(experiment(short, Exponential(mean=1.0)), threads=1)
    np.testing.assert_allclose(one.params, other.params, rtol=0, atol=1e-12)
    assert one.rounds["elapsed"][-1] == pytest.approx(other.rounds["elapsed"][-1], abs=1e-6)


def test_with_equal_speeds_it_is_fedavg_with_equal_weights():
    one = af.run(experiment(FedAvg(cohort_size=4, weighting="equal", work=WORK), Constant(value=2.0)), threads=1)
    for period in ({"period": 2.0}, {}):
        other = af.run(experiment(Periodic(concurrency=4, work=WORK, **period), Constant(value=2.0)), threads=1)
        assert other.rounds["elapsed"][-1] == pytest.approx(one.rounds["elapsed"][-1])
        np.testing.assert_allclose(one.evaluations["objective"], other.evaluations["objective"], rtol=0.05)


def test_with_equal_speeds_every_merge_is_a_mean_of_models(clock_run):
    """The same exactly: x + (1/k) sum (w_i - x) = (1/k) sum w_i."""
    run = clock_run(Periodic(concurrency=3, period=2.0), [2.0] * 3, [3.0, 6.0, 9.0]).run(6.0)
    assert [(time, sorted(clients), x) for time, _, clients, x in run.log] == [
        (2.0, [0, 1, 2], 6.0),
        (4.0, [0, 1, 2], 12.0),
        (6.0, [0, 1, 2], 18.0),
    ]


@given(st.lists(st.floats(0.5, 20.0), min_size=1, max_size=5), st.floats(0.5, 10.0), st.booleans())
@settings(max_examples=15, deadline=None)
def test_merges_come_at_multiples_of_the_period(clock_run, seconds, period, at_once):
    strategy = Periodic(concurrency=len(seconds), period=period, restart="at_once" if at_once else "at_merge")
    run = clock_run(strategy, seconds).run(30.0)
    moments = np.array([time for time, *_ in run.log]) / period
    assert np.allclose(moments, np.round(moments), atol=1e-6)
    assert len(set(np.round(moments))) == len(moments)  # one merge in each at most
    assert all(sum(merge.weights) <= 1 + 1e-12 for merge in run.merges)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [ShuffledCycle(), UniformAll()])
@pytest.mark.parametrize("restart", ["at_merge", "at_once"])
def test_it_passes_the_check(sampler, restart):
    check_strategy(Periodic(concurrency=3, period=1.0, restart=restart, sampler=sampler), seed=1)


@pytest.mark.parametrize("setting", ["period", "server_lr"])
def test_bad_settings_are_refused(setting):
    with pytest.raises(ConfigError, match=rf"strategy.{setting} is -1.0; it must be a positive number"):
        Periodic(**{setting: -1.0})
