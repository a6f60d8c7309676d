"""LatestMomenta and LatestModels: by hand, their limits, and what they withstand."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Merge, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.rules import Arrival, LatestModels, LatestMomenta, RuleRun
from asyncfed.rules.aggregators import Average, Ctma, Median
from asyncfed.strategies import AFL, AsyncSGD

WORK = Work(epochs=1, batch_size=8, learning_rate=0.05)
DELAYS = Delays(compute=Exponential(mean=1.0))


def play(rule, reports, size=1, weight=1.0, of="delta"):
    """The model after each report of (client, change), all from 0; and what was said of the last."""
    run, x, seen, info = RuleRun(rule, np.zeros(size), 5), np.zeros(size), [], {}
    for ticket, (client, change) in enumerate(reports):
        model = np.atleast_1d(np.array(change, float))
        arrival = Arrival(ticket, client, weight, 0, WORK, 1, 1, np.zeros(size), model)
        keep = 1.0 if of == "delta" else 0.0
        x, info = run.step(x, [arrival], Merge((ticket,), (weight,), keep=keep, of=of), 0)
        seen.append(x.tolist() if size > 1 else x.item())
    return seen, info


def test_momenta_by_hand():
    """beta 1/2, mean: d_0 = 4; then d_1 = 2, mean 3; then d_0 = 4/2 + 8/2 = 6 with 2 reports, (2 * 6 + 2) / 3."""
    rule = LatestMomenta(aggregator=Average(), momentum=0.5)
    seen, _ = play(rule, [(0, 4.0), (1, 2.0), (0, 8.0)])
    assert seen == pytest.approx([4.0, 4.0 + 3.0, 4.0 + 3.0 + 14 / 3])


def test_until_enough_have_reported_the_model_stays():
    seen, info = play(LatestMomenta(), [(0, 4.0), (1, 2.0)])
    assert seen == [0.0, 0.0]
    assert info == {"too_few": 2.0}
    assert play(LatestMomenta(), [(0, 4.0), (1, 2.0), (2, 3.0)])[0] == [0.0, 0.0, 3.0]


def test_one_client_with_more_than_half_of_the_reports_is_the_median():
    reports = [(0, 1.0), (1, 2.0), (2, 9.0), (2, 9.0), (2, 9.0)]
    counted, once = (play(LatestMomenta(momentum=0.0, by_count=b), reports)[0] for b in (True, False))
    assert counted[-1] - counted[-2] == 9.0  # 3 of 5 reports
    assert once[-1] - once[-2] == 2.0


def test_with_equal_counts_it_is_the_plain_median():
    changes = np.random.default_rng(0).normal(size=(5, 3))
    seen, _ = play(LatestMomenta(momentum=0.3), list(enumerate(changes)), size=3)
    assert np.allclose(np.subtract(seen[-1], seen[-2]), np.median(changes, axis=0))


def test_latest_models_by_hand():
    seen, info = play(LatestModels(), [(0, 4.0), (1, 2.0), (2, 100.0), (0, 3.0)], of="model")
    assert seen == [0.0, 0.0, 4.0, 3.0]
    assert info == {}
    assert play(LatestModels(aggregator=Average()), [(0, 4.0), (1, 2.0)], of="model")[0] == [4.0, 3.0]


def test_who_left_is_forgotten_by_afl(tiny):
    """With `Average`, and nobody who has not reported, it is AFL's own mean."""
    own, robust = (AFL(concurrency=3, work=WORK, **rule) for rule in ({}, {"rule": LatestModels(aggregator=Average())}))
    churn = (af.Churn(time=9.0, client=1, event="leave"), af.Churn(time=12.0, client=1, event="join"))
    one, other = (
        af.run(tiny(clients=3, strategy=s, budget=Budget(updates=60), delays=DELAYS, churn=churn))
        for s in (own, robust)
    )
    assert other.evaluations["objective"][-1] == pytest.approx(one.evaluations["objective"][-1], rel=0.2)


@pytest.mark.parametrize(
    "strategy",
    [
        AFL(concurrency=5, work=WORK, rule=LatestModels()),
        AsyncSGD(concurrency=5, server_lr=0.1, work=WORK, rule=LatestMomenta()),
        AsyncSGD(concurrency=5, server_lr=0.1, work=WORK, rule=LatestMomenta(by_count=False)),
    ],
    ids=["afl", "momenta", "once"],
)
def test_liars_do_no_harm(tiny, strategy):
    experiment = tiny(clients=7, strategy=strategy, delays=DELAYS, budget=Budget(updates=400))
    run = af.run(af.replace(experiment, attack=Liars(attack=SignFlip(scale=10.0), clients=(1, 4))))
    assert run.evaluations["objective"][-1] < 0.3 * run.evaluations["objective"][0]


def test_too_few_clients_are_refused():
    for rule in (LatestMomenta(aggregator=Median(liars=2)), LatestModels(aggregator=Median(liars=2))):
        with pytest.raises(ConfigError, match="median needs at least 5 updates"):
            AsyncSGD(concurrency=2, rule=rule).check(4)
    with pytest.raises(ConfigError, match=r"rule\.momentum is 1\.0"):
        LatestMomenta(momentum=1.0)


@pytest.mark.parametrize(
    "strategy",
    [
        AsyncSGD(concurrency=4, server_lr=0.2, work=WORK, rule=LatestMomenta()),
        AFL(concurrency=4, work=WORK, rule=LatestModels()),
    ],
    ids=["momenta", "models"],
)
def test_threads_interruptions_and_replay(tiny, trusted, strategy):
    trusted(tiny(clients=6, strategy=strategy, delays=DELAYS, budget=Budget(updates=50)))


def test_whose_latest_model_stands_out_is_filtered_by_its_ticket():
    rule = LatestModels(aggregator=Ctma(liars=1, factor=3.0))
    seen, info = play(rule, [(0, 1.0), (1, 2.0), (2, 3.0), (3, 90.0)], of="model")
    assert seen[-1] == 2.0  # the median of 1, 2, 3, 90 is 2.5; distances 1.5, 0.5, 0.5, 87.5, median 1; 90 is left out
    assert info == {"left_out": 1.0, "filtered": 1, "filtered/3": 87.5}
    seen, info = play(rule, [(0, 1.0), (1, 2.0), (2, 3.0), (3, 5.0)], of="model")
    assert (seen[-1], info) == (2.75, {})  # 2.5 from 2.5 is within 3 times the median distance: the mean of all
