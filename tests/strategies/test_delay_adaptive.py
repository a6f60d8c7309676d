"""Delay-adaptive SGD: a trace by hand in each reading, its limit, and how much dropping can lose."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.record import replace
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Dispatch, Drop, Merge, Report, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import AsyncSGD, DelayAdaptive
from asyncfed.testing import check_strategy

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def late_by_four(run):
    """Client 2 is four versions late: clients 0 and 1 report twice each, by 1 every time."""
    for number, client in enumerate((0, 1, 0, 1)):
        run.arrive(client, run.start_of(client) + 1.0)
        assert run.x == number + 1.0
    return run


def test_by_hand(hand_run):
    run = late_by_four(hand_run(DelayAdaptive(concurrency=3)))
    assert run.arrive(2, 8.0) == (4, "merge", 10.0)  # 4 + (3/4) 8: tau = 4 is above tau_C = 3
    assert run.arrive(0, 4.0) == (2, "merge", 11.0)  # started from 3, tau = 2: counts in full


def test_by_hand_with_another_threshold_and_step(hand_run):
    run = hand_run(DelayAdaptive(concurrency=3, staleness_threshold=1, server_lr=0.5))
    assert run.arrive(0, 4.0) == (0, "merge", 2.0)
    assert run.arrive(1, 8.0) == (1, "merge", 6.0)  # 2 + 8/2: tau = 1 counts in full
    assert run.arrive(2, 8.0) == (2, "merge", 8.0)  # 6 + (1/2)(1/2) 8


def test_by_hand_with_dropping(hand_run):
    run = late_by_four(hand_run(DelayAdaptive(concurrency=3, beyond="drop")))
    assert run.arrive(2, 8.0) == (4, "drop", 4.0)
    assert run.start_of(2) == 4.0


def test_by_hand_with_the_limit_of_the_theorem(hand_run):
    """One step of rate 1/32 and L = 4: 1/(4 * 4 * 4 * 1/32) = 1/2 of the change."""
    work = Work(learning_rate=1 / 32, steps=1)
    run = late_by_four(hand_run(DelayAdaptive(concurrency=3, beyond="theorem", smoothness=4.0, work=work)))
    assert run.arrive(2, 8.0) == (4, "merge", 8.0)
    small = DelayAdaptive(concurrency=3, beyond="theorem", smoothness=4.0, server_lr=0.25)
    assert small.weight(staleness=4, rates=1 / 32) == 0.25  # never more than server_lr
    assert small.weight(staleness=4, rates=0.0) == 0.25  # a client without steps changes nothing


@given(
    concurrency=st.integers(1, 20), staleness=st.integers(0, 200), rate=st.floats(1e-4, 1.0), lr=st.floats(0.01, 10.0)
)
@settings(max_examples=40)
def test_up_to_tau_c_in_full_and_beyond_it_inside_the_interval_of_the_theorem(concurrency, staleness, rate, lr):
    """With eta <= 1/(4 L tau_C), eta being server_lr times the rate, the form without L is inside it too."""
    largest = 1.0 / (4.0 * lr * rate * concurrency)  # an L for which eta is as large as it may be
    for strategy in (
        DelayAdaptive(concurrency=concurrency, server_lr=lr),
        DelayAdaptive(concurrency=concurrency, server_lr=lr, beyond="drop"),
        DelayAdaptive(concurrency=concurrency, server_lr=lr, beyond="theorem", smoothness=largest),
    ):
        weight = strategy.weight(staleness, rate)
        if staleness <= concurrency:
            assert weight == lr
        else:
            assert 0 <= weight * rate <= min(lr * rate, 1 / (4 * largest * staleness)) * (1 + 1e-12)


@pytest.mark.parametrize("beyond", ["shrink", "drop"])
def test_with_all_delays_within_the_threshold_it_is_asynchronous_sgd_to_the_last_bit(tiny, beyond):
    """Equal speeds: no delay is above concurrency - 1."""
    plain, adaptive = AsyncSGD(concurrency=4, work=WORK), DelayAdaptive(concurrency=4, beyond=beyond, work=WORK)
    runs = [af.run(tiny(clients=6, strategy=s, budget=Budget(updates=80), init="torch")) for s in (plain, adaptive)]
    assert runs[0].rounds["staleness_max"].max() == 3
    assert runs[0].sha256 == runs[1].sha256
    assert runs[0].params.tobytes() == runs[1].params.tobytes()


def test_it_is_something_else_when_somebody_is_late(tiny):
    delays = Delays(compute=Exponential(mean=1.0))
    plain = AsyncSGD(concurrency=4, work=WORK)
    runs = [
        af.run(tiny(clients=6, strategy=s, delays=delays, budget=Budget(updates=80)))
        for s in (plain, DelayAdaptive(concurrency=4, work=WORK))
    ]
    assert runs[0].params.tobytes() != runs[1].params.tobytes()


def drive(strategy, seed, arrivals):
    """(merged, dropped, clients that worked) after so many reports in random order."""
    server = Server(strategy, [1] * 8, seed)
    workers = {output.client for output in server.start()}
    chance, merged, dropped = Stream(purpose_key(seed, "order")), 0, 0
    for _ in range(arrivals):
        tickets = list(server.outstanding)
        dispatch = server.outstanding[tickets[chance.below(min(2, len(tickets)) if chance.below(8) else len(tickets))]]
        outputs = server.receive(Report(dispatch.ticket, dispatch.client, 0.0, 1.0, 1))
        merged += sum(isinstance(output, Merge) for output in outputs)
        dropped += sum(isinstance(output, Drop) for output in outputs)
        workers |= {output.client for output in outputs if isinstance(output, Dispatch)}
        assert len(server.outstanding) == strategy.concurrency
    return merged, dropped, workers


@given(seed=st.integers(0, 10_000), concurrency=st.integers(1, 8), arrivals=st.integers(1, 150))
@settings(max_examples=40)
def test_dropping_loses_less_than_half(seed, concurrency, arrivals):
    """Every merge makes C - 1 others older, and a dropped one was above C: dropped (C + 1) <= (C - 1) merged."""
    merged, dropped, _ = drive(DelayAdaptive(concurrency=concurrency, beyond="drop"), seed, arrivals)
    assert merged + dropped == arrivals
    assert dropped * (concurrency + 1) <= (concurrency - 1) * merged
    assert 2 * dropped < arrivals


def test_workers_that_go_on_themselves_are_always_the_same(hand_run):
    _, _, workers = drive(DelayAdaptive(concurrency=3, next_client="same"), 1, 60)
    assert len(workers) == 3
    run = hand_run(DelayAdaptive(concurrency=2, next_client="same"), num_examples=(1, 1, 1))
    first, second = (d.client for d in run.server.outstanding.values())
    (third,) = {0, 1, 2} - {first, second}
    run.lose(first)
    assert {d.client for d in run.server.outstanding.values()} == {first, second}
    run.leave(second)  # a worker that is gone is replaced
    assert {d.client for d in run.server.outstanding.values()} == {first, third}


@pytest.mark.parametrize("beyond", ["drop", "theorem"])
def test_every_setting_passes_the_check(beyond):
    how = {"smoothness": 2.0} if beyond == "theorem" else {}
    check_strategy(DelayAdaptive(concurrency=3, beyond=beyond, next_client="same", staleness_threshold=1, **how))


def test_bad_settings_are_refused():
    with pytest.raises(ConfigError, match=r"strategy\.staleness_threshold is 0; it must be at least 1 version"):
        DelayAdaptive(staleness_threshold=0)
    with pytest.raises(ConfigError, match=r'beyond is "theorem" and strategy\.smoothness is left out'):
        DelayAdaptive(beyond="theorem")
    with pytest.raises(ConfigError, match=r'beyond is "shrink" and strategy\.smoothness is 2\.0'):
        DelayAdaptive(smoothness=2.0)
    with pytest.raises(ConfigError, match=r"strategy\.smoothness is 0; it must be a positive number"):
        DelayAdaptive(beyond="theorem", smoothness=0)
    with pytest.raises(ConfigError, match=r"strategy\.server_lr is -1"):
        replace(DelayAdaptive(), server_lr=-1)
