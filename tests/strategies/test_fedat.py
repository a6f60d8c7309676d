"""FedAT: a trace by hand, its limit FedAvg, the weights of tiers, how tiers are made, clients that come and go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import FedAT, FedAvg
from asyncfed.strategies.fedat import split_by_speed, tier_weights
from asyncfed.testing import check_strategy

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01, proximal=0.4)


def test_a_trace_by_hand(clock_run):
    """Clients 0 and 1 take 1 and 2 s and add 2 and 6; clients 2 and 3 take 4 and 8 s and add 10 and 30."""
    run = clock_run(FedAT(tiers=2, cohort_size=2), [1.0, 2.0, 4.0, 8.0], [2.0, 6.0, 10.0, 30.0])
    assert run.at_work() == [0, 1, 2, 3]
    assert run.run(8.0).log == [
        (8.0, "merge", [0, 1], 2.0),  # w_1 = 4; T = (1, 0): 4/2 + 0/2
        (8.0, "merge", [2, 3], 12.0),  # w_2 = 20; T = (1, 1): 4/2 + 20/2
    ]
    assert (run.server.version, run.server.round) == (2, 1)
    third = pytest.approx(56 / 3, rel=1e-14)  # w_1 = 12 + 4; T = (2, 1): 1/3 of 16 and 2/3 of 20
    assert run.run(10.0).log[2:] == [(10.0, "merge", [0, 1], third)]
    fourth = pytest.approx(62 / 3, rel=1e-14)  # w_1 = 56/3 + 4; T = (3, 1): 1/4 of 68/3 and 3/4 of 20
    assert run.run(12.0).log[3:] == [(12.0, "merge", [0, 1], fourth)]
    fifth = pytest.approx(314 / 15, rel=1e-14)  # w_1 = 62/3 + 4; T = (4, 1): 1/5 of 74/3 and 4/5 of 20
    assert run.run(14.0).log[4:] == [(14.0, "merge", [0, 1], fifth)]
    sixth = pytest.approx(266 / 9, rel=1e-14)  # w_2 = 12 + 20; T = (4, 2): 1/3 of 74/3 and 2/3 of 32
    seventh = pytest.approx(3148 / 105, rel=1e-14)  # w_1 = 314/15 + 4; T = (5, 2): 2/7 of 374/15 and 5/7 of 32
    assert run.run(16.0).log[5:] == [(16.0, "merge", [2, 3], sixth), (16.0, "merge", [0, 1], seventh)]


def test_samples_count_inside_a_tier(clock_run):
    run = clock_run(FedAT(tiers=2, cohort_size=2), [1.0, 1.1, 1.9, 2.0], [4.0, 8.0, 0.0, 12.0], [1, 3, 2, 1]).run(2.0)
    assert run.log[-1] == (2.0, "merge", [2, 3], pytest.approx((7.0 + 4.0) / 2))  # (4 + 3 * 8) / 4 and 12 / 3


@pytest.mark.parametrize("cohort_size", [2, 5])
def test_with_one_tier_it_is_fedavg_to_the_last_bit(cohort_size):
    settings = {"num_clients": 5, "data": af.data.PaperRegression(num_samples=50), "budget": Budget(updates=40)}
    delays = Delays(compute=Exponential(mean=1.0))
    one = FedAT(tiers=1, cohort_size=cohort_size, work=WORK)
    other = FedAvg(cohort_size=cohort_size, work=WORK)
    runs = [af.run(af.Experiment(strategy=s, delays=delays, **settings), threads=1) for s in (one, other)]
    assert runs[0].params.tobytes() == runs[1].params.tobytes()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(any))
@settings(max_examples=20)
def test_weights_sum_to_one(rounds):
    weights = tier_weights(rounds)
    assert sum(weights) == pytest.approx(1.0, rel=1e-12)
    assert min(weights) >= 0.0
    if 0 in rounds:
        assert set(weights) == {1 / len(rounds)}


def test_equal_counts_count_equally():
    assert tier_weights([7, 7, 7, 7]) == (0.25,) * 4
    assert tier_weights([1]) == (1.0,)
    assert tier_weights([4, 2, 2]) == (0.25, 0.25, 0.5)  # the slowest counts as often as the fastest was heard


@given(st.dictionaries(st.integers(0, 30), st.floats(0.0, 100.0), max_size=12), st.integers(1, 6))
@settings(max_examples=20)
def test_tiers_are_in_order_of_speed_and_of_equal_size(seconds, tiers):
    tier_of = split_by_speed(seconds, tiers)
    sizes = np.bincount(list(tier_of.values()), minlength=tiers)
    assert tier_of.keys() == seconds.keys()
    assert sizes.max() - sizes.min() <= 1
    for one in seconds:
        for other in seconds:
            assert seconds[one] >= seconds[other] or tier_of[one] <= tier_of[other]


def test_who_was_not_in_the_first_cohort_finds_its_tier(clock_run):
    """Six clients, two tiers of one: the first cohort is of two, the others are placed when they have reported."""
    seconds = [1.0, 9.0, 1.1, 9.1, 1.2, 9.2]
    run = clock_run(FedAT(tiers=2, cohort_size=1), seconds).run(200.0)
    fast = [clients for _, _, clients, _ in run.log if clients[0] in (0, 2, 4)]
    counts = np.bincount([clients[0] for _, _, clients, _ in run.log], minlength=6)
    assert counts.min() > 0
    assert len(fast) > 5 * (len(run.log) - len(fast))  # fast and slow ones do not wait for each other
    assert run.server._state.seconds == pytest.approx(seconds)


def test_a_tier_goes_on_without_those_who_are_lost_or_leave(clock_run):
    run = clock_run(FedAT(tiers=2, cohort_size=2), [1.0, 2.0, 4.0, 8.0], [2.0, 6.0, 10.0, 30.0]).run(8.5)
    run.lose(1)
    assert run.run(9.0).log[2] == (9.0, "merge", [0], pytest.approx((12.0 + 2.0) / 3 + 2 / 3 * 20.0))
    assert run.at_work() == [0, 1, 2, 3]
    for client in (0, 1, 2, 3):
        run.leave(client)
    assert run.at_work() == []
    run.join(7, seconds=1.0)
    assert run.at_work() == [7]
    version = run.server.version
    assert run.run(12.0).server.version > version


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [FedAT(tiers=2, cohort_size=2), FedAT(tiers=5), FedAT(tiers=3)], ids=str)
def test_it_passes_the_check(strategy):
    check_strategy(strategy, seed=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tiers": 0}, "strategy.tiers is 0; there must be at least 1 tier"),
        ({"cohort_size": 0}, "strategy.cohort_size is 0; at least 1 client must be at work"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        FedAT(**settings)


def test_too_few_clients_are_refused():
    with pytest.raises(ConfigError, match=r"which needs 6 clients, but there are only 5\. Lower one of them"):
        FedAT(tiers=3, cohort_size=2).check(5)
