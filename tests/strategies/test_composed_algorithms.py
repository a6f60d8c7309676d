"""CA2FL, FedNova and DC-ASGD by name: traces by hand through strategy and rule. Their limits: tests/rules."""

import pytest

from asyncfed.core.types import Work
from asyncfed.rules import CA2FL, DcAsgd, FedNova
from asyncfed.strategies import AsyncSGD, FedAvg, FedBuff, algorithms
from asyncfed.strategies.discounts import NoDiscount
from asyncfed.strategies.schedules import ConstantRate

RATE = Work(learning_rate=0.5)


def named(name, tickets, work=RATE):
    return algorithms()[name].make(tickets, work, ConstantRate())


def test_what_the_names_stand_for():
    assert named("ca2fl", 12) == FedBuff(
        concurrency=12, buffer_size=10, server_lr=10 / 12, discount=NoDiscount(), work=RATE, rule=CA2FL()
    )
    assert (named("ca2fl", 3).buffer_size, named("ca2fl", 3).server_lr) == (3, 1.0)
    assert named("fednova", 3) == FedAvg(cohort_size=3, work=RATE, rule=FedNova())
    assert named("dc_asgd", 4) == AsyncSGD(concurrency=4, server_lr=0.25, work=RATE, rule=DcAsgd())


def test_ca2fl_calibrates_what_fast_clients_send_twice(hand_run):
    run = hand_run(named("ca2fl", 2), num_examples=(1, 1))  # two clients, a buffer of two
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)
    assert run.arrive(0, 8.0) == (0, "merge", 6.0)  # h = 0 and h_i = 0: v = mean(4, 8); then h_0 = 8, h = 4
    assert run.arrive(1, 2.0) == (1, "hold", 6.0)  # from 0: a change of 2
    assert run.arrive(0, 7.0) == (0, "merge", 7.5)  # from 6: 1. v = 4 + mean(2 - 0, 1 - 8) = 1.5; h = (1 + 2)/2
    assert run.arrive(1, 9.0) == (1, "hold", 7.5)  # from 6: 3, as staleness does not count
    assert run.arrive(1, 10.5) == (0, "merge", 10.0)  # from 7.5: 3. v = 1.5 + mean(3 - 2, 3 - 2) = 2.5


def test_fednova_counts_changes_per_step(hand_run):
    run = hand_run(named("fednova", 2), num_examples=(1, 3))
    run.arrive(0, 4.0, steps=1)
    run.arrive(1, 4.0, steps=4)
    # p = (1/4, 3/4), tau_eff = 1/4 + 3 = 13/4; x = 13/4 (1/4 * 4/1 + 3/4 * 4/4)
    assert run.x == pytest.approx(13 / 4 * 1.75)


def test_dc_asgd_corrects_what_is_stale(hand_run):
    run = hand_run(named("dc_asgd", 2), num_examples=(1, 1))
    assert run.arrive(0, 4.0) == (0, "merge", 2.0)  # fresh: half of the change
    # From 0 to -2 at rate 1/2: g = 4, and the model has moved by 2: the change is -2 - 1/2 * 0.04 * 16 * 2 = -2.64.
    assert run.arrive(1, -2.0)[2] == pytest.approx(2.0 - 1.32)
