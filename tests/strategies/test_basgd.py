"""BASGD: buckets by hand, its limits, who is waited for, and liars."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Merge, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.rules import Arrival, BucketAggregate, RuleRun
from asyncfed.rules.aggregators import Average, Median, TrimmedMean
from asyncfed.strategies import BASGD, AsyncSGD

WORK = Work(epochs=1, batch_size=8, learning_rate=0.05)
DELAYS = Delays(compute=Exponential(mean=1.0))


def test_by_hand(hand_run):
    """Three buckets, four clients: 0 and 3 share one. Their mean, and the median of the three means."""
    run = hand_run(BASGD(concurrency=4, buckets=3), num_examples=(1, 1, 1, 1))
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)  # the first change is kept
    assert run.start_of(0) == 0.0  # and its client has a new ticket at once
    assert run.arrive(3, 8.0) == (0, "hold", 0.0)
    assert run.arrive(1, 100.0) == (0, "hold", 0.0)
    assert run.arrive(2, 5.0) == (0, "merge", 6.0)  # the median of 6, 100 and 5
    assert run.merges[0].weights == pytest.approx((1 / 6, 1 / 6, 1 / 3, 1 / 3))
    assert run.arrive(0, 7.0) == (1, "hold", 6.0)  # buckets are empty again


def test_with_one_bucket_every_arrival_is_a_step(tiny):
    runs = [
        af.run(tiny(clients=6, strategy=s, delays=DELAYS, budget=Budget(updates=60)))
        for s in (
            BASGD(concurrency=4, buckets=1, aggregator=Median(liars=0), server_lr=0.3, work=WORK),
            AsyncSGD(concurrency=4, server_lr=0.3, work=WORK),
        )
    ]
    assert np.allclose(runs[0].params, runs[1].params, rtol=1e-12, atol=1e-14)


@given(order=st.permutations(range(6)), seed=st.integers(0, 99))
def test_the_order_within_a_bucket_does_not_matter(order, seed):
    changes = np.random.default_rng(seed).normal(size=(6, 3))

    def stepped(places):
        arrivals = [
            Arrival(ticket, 3 * (place // 3) + 1, 1.0, 0, WORK, 1, 1, np.zeros(3), changes[place])
            for ticket, place in enumerate(places)
        ]
        rule = RuleRun(BucketAggregate(buckets=2, aggregator=Average()), np.zeros(3), 6)
        return rule.step(np.zeros(3), arrivals, Merge(tuple(range(6)), (1.0,) * 6), 0)[0]

    assert np.allclose(stepped(order), stepped(range(6)), rtol=1e-13, atol=1e-15)


@given(
    lies=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2),
    honest=st.lists(st.floats(-5, 5), min_size=3, max_size=3),
)
def test_lies_in_fewer_buckets_than_it_withstands_stay_within_the_honest_values(lies, honest):
    for aggregator in (Median(liars=2), TrimmedMean(liars=2)):
        rule = RuleRun(BucketAggregate(buckets=5, aggregator=aggregator), np.zeros(1), 5)
        arrivals = [
            Arrival(c, c, 0.2, 0, WORK, 1, 1, np.zeros(1), np.array([value]))
            for c, value in enumerate([*lies, *honest])
        ]
        x, _ = rule.step(np.zeros(1), arrivals, Merge(tuple(range(5)), (0.2,) * 5), 0)
        assert min(honest) - 1e-9 <= x[0] <= max(honest) + 1e-9


def test_a_bucket_whose_clients_have_left_is_not_waited_for(hand_run):
    run = hand_run(BASGD(concurrency=4, buckets=4), num_examples=(1, 1, 1, 1))
    for client, change in enumerate((1.0, 2.0, 3.0)):
        assert run.arrive(client, change)[1] == "hold"
    assert run.leave(3) == ("merge", 2.0)  # three buckets still withstand the 1 liar that four do
    run.leave(2)
    assert run.arrive(0, 5.0)[1] == run.arrive(1, 5.0)[1] == "hold"  # two do not
    assert run.join(2)[0] == "hold"
    assert run.arrive(2, 5.0)[1] == "merge"


def test_what_cannot_work_is_refused():
    for strategy, words in [
        (BASGD(buckets=7), r"strategy\.buckets is 7, but there are only 6 clients"),
        (BASGD(buckets=2), r"strategy\.buckets is 2, which is too few: median needs at least 3"),
        (BASGD(buckets=4, aggregator=TrimmedMean(liars=2)), "too few: trimmed_mean needs at least 5"),
    ]:
        with pytest.raises(ConfigError, match=words):
            strategy.check(6)
    with pytest.raises(ConfigError, match=r"strategy\.buckets is 0"):
        BASGD(buckets=0)
    assert BASGD(buckets=7).liars == 3


def test_liars_do_no_harm_and_without_it_they_do(tiny):
    attack = Liars(attack=SignFlip(scale=10.0), clients=(1, 4))
    ends = {}
    for name, strategy in (
        ("basgd", BASGD(concurrency=5, buckets=7, work=WORK)),
        ("open", AsyncSGD(concurrency=5, server_lr=0.2, work=WORK)),
    ):
        experiment = tiny(clients=7, strategy=strategy, delays=DELAYS, budget=Budget(updates=400))
        run = af.run(af.replace(experiment, attack=attack))
        ends[name] = run.evaluations["objective"][-1] / run.evaluations["objective"][0]
    assert ends["basgd"] < 0.2
    assert not ends["open"] < 10


def test_threads_interruptions_and_replay(tiny, trusted):
    trusted(tiny(clients=7, strategy=BASGD(concurrency=4, work=WORK), delays=DELAYS, budget=Budget(updates=60)))
