"""ASO-Fed's strategy: weights by samples seen, AFL as its server's limit, steps that follow delays, churn."""

from math import exp, log

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.rules import AsoFed
from asyncfed.strategies import AFL, ASOFed, algorithms
from asyncfed.strategies.samplers import UniformAll
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.testing import check_strategy


def test_a_trace_by_hand(hand_run):
    run = hand_run(ASOFed(concurrency=3), num_examples=(1, 2, 1))
    assert run.arrive(0, 4.0) == (0, "merge", 1.0)  # 1/4 (4 - 0)
    assert run.arrive(1, 6.0) == (1, "merge", 4.0)  # 1 + 2/4 (6 - 0)
    assert run.arrive(0, 8.0) == (1, "merge", 5.0)  # 4 + 1/4 (8 - 4)
    assert run.arrive(2, -4.0) == (3, "merge", 4.0)  # 5 + 1/4 (-4 - 0)
    assert run.arrive(1, 2.0) == (2, "merge", 2.0)  # 4 + 2/4 (2 - 6)
    assert run.x == (8.0 + 2 * 2.0 - 4.0) / 4


def test_the_server_is_that_of_afl_by_samples(hand_run):
    arrivals = [(0, 4.0), (1, 6.0), (1, -3.0), (2, 1.0), (0, 2.5), (2, 7.0), (1, 0.5)]
    runs = [
        hand_run(strategy, num_examples=(3, 1, 4))
        for strategy in (ASOFed(concurrency=3), AFL(concurrency=3, weighting="samples", schedule=ConstantRate()))
    ]
    for client, model in arrivals:
        ends = [run.arrive(client, model) for run in runs]
        assert ends[0][2] == pytest.approx(ends[1][2], abs=1e-12)


def test_who_leaves_keeps_its_share_and_who_joins_gets_one(hand_run):
    run = hand_run(ASOFed(concurrency=2), num_examples=(1, 1))
    run.arrive(0, 4.0)
    run.arrive(1, 8.0)  # x = 6
    run.leave(1)
    assert run.arrive(0, 6.0) == (1, "merge", 7.0)  # still 1/2: (6 + 8)/2
    run.join(1, num_examples=1)
    assert run.arrive(1, 9.0) == (0, "merge", 7.5)  # (6 + 9)/2
    run.leave(0)
    run.join(3, num_examples=2)  # N = 4
    start = run.start_of(3)
    assert run.arrive(3, start + 2.0)[2] == pytest.approx(8.5)  # 7.5 + 2/4 (from the model it downloaded)


def test_who_is_absent_at_the_start_does_not_pull_the_model_away_from_it():
    """Its first change counts from the model it downloads: from x_0 it would move x by its share of all the way."""
    strategy = ASOFed(concurrency=3, dynamic_step=False, work=Work(batch_size=100, steps=20, learning_rate=0.05))
    experiment = af.Experiment(
        num_clients=5,
        data=af.data.PaperRegression(num_samples=100),
        strategy=strategy,
        churn=tuple([af.Churn(time=30.0, client=client, event="join") for client in (3, 4)]),
        budget=af.Budget(updates=400),
    )
    optimum = experiment.problem().optimum()
    assert np.linalg.norm(af.run(experiment, threads=1).params - optimum) < 0.05 * np.linalg.norm(optimum)


def test_clients_without_samples_count_the_same(hand_run):
    run = hand_run(ASOFed(concurrency=2), num_examples=(0, 0))
    assert run.arrive(0, 4.0) == (0, "merge", 2.0)


def rates_after(hand_run, strategy, durations):
    """Each client's rate after one report that took so long, in the order of these reports."""
    run, rates = hand_run(replace(strategy, work=Work(learning_rate=0.5, proximal=0.01))), []
    for client, duration in enumerate(durations):
        run.arrive(client, 1.0, duration=duration)
        rates.append(run.server.outstanding[run.ticket_of(client)].work.learning_rate)
    return rates


def test_slow_clients_make_longer_steps(hand_run):
    literal = ASOFed(concurrency=3, delay_unit=1.0)
    assert rates_after(hand_run, literal, (2.0, exp(2.0), 100.0)) == pytest.approx([0.5, 1.0, 0.5 * log(100.0)])
    relative = ASOFed(concurrency=3)  # the fastest client's time is the unit
    assert rates_after(hand_run, relative, (60.0, 60.0 * exp(2.0), 30.0)) == pytest.approx([0.5, 1.0, 0.5])
    assert rates_after(hand_run, replace(relative, dynamic_step=False), (1.0, 50.0, 0.0)) == [0.5] * 3
    assert rates_after(hand_run, relative, (0.0, 5.0, 0.0)) == [0.5] * 3  # a time of 0 is no unit


def test_it_is_the_mean_time_that_counts(hand_run):
    run = hand_run(ASOFed(concurrency=1, delay_unit=1.0), num_examples=(1,))
    run.arrive(0, 1.0, duration=100.0)
    run.arrive(0, 1.0, duration=300.0)
    assert run.server.outstanding[run.ticket_of(0)].work.learning_rate == pytest.approx(0.01 * log(200.0))


def test_the_name_and_what_is_refused():
    make = algorithms()["aso_fed"].make
    assert make(3, Work(), ConstantRate()) == ASOFed(concurrency=3, dynamic_step=False, work=Work(proximal=0.01))
    assert make(3, Work(proximal=0.2), ConstantRate()).work.proximal == 0.2
    with pytest.raises(ConfigError, match=r"strategy\.delay_unit is -1\.0; it must be a positive number of seconds"):
        ASOFed(delay_unit=-1.0)
    with pytest.raises(ConfigError, match=r"work\.start is own, which the rule ASO-Fed"):
        ASOFed(concurrency=3, work=Work(start="own")).check(3)
    assert ASOFed().rule == AsoFed()
    check_strategy(ASOFed(concurrency=3, sampler=UniformAll()), seed=2)
    check_strategy(ASOFed(concurrency=1, delay_unit=0.1), num_clients=1)


@pytest.mark.slow
@pytest.mark.parametrize("balance", [0.0, 0.5])
def test_clients_that_agree_are_led_to_their_optimum_also_under_loss(balance):
    work = Work(epochs=5, batch_size=10**6, learning_rate=0.05, proximal=0.01)
    run = af.Experiment(
        num_clients=4,
        data=af.data.PaperRegression(num_samples=80, noise=0.0),
        strategy=ASOFed(concurrency=4, work=work, dynamic_step=False, rule=AsoFed(balance=balance)),
        delays=replace(af.delays.stragglers(), dropout=0.1),
        budget=af.Budget(updates=1500),
        evaluation=af.Evaluation(every=1000),
    )
    optimum = run.problem().optimum()
    assert np.linalg.norm(af.run(run).params - optimum) < 1e-3 * np.linalg.norm(optimum)
