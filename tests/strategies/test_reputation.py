"""Reputation: who is set aside and when, who comes back, how many remain, and what the wrapped strategy sees."""

from itertools import pairwise

import pytest

import asyncfed as af
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Drop, Merge, Report, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import AFL, AFLGuard, AsyncSGD, FedAvg, FedBuff, Reputation, Zeno, algorithms
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.testing import check_strategy

WORK = Work(epochs=1, batch_size=8, learning_rate=0.05)
DELAYS = Delays(compute=Exponential(mean=1.0))
GUARD = AFLGuard(concurrency=4, train_trusted=True)


def answer(server, liars=(), suspicion=None):
    """The oldest ticket is reported; liars are too far away. Answers with the client and what became of the report."""
    dispatch = next(iter(server.outstanding.values()))
    numbers = {"distance": 9.0 if dispatch.client in liars else 0.0, "trusted_norm": 1.0}
    if suspicion is not None:
        numbers["suspicion"] = suspicion if dispatch.client in liars else 0.0
    outputs = server.receive(Report(dispatch.ticket, dispatch.client, 1.0, 1.0, 1, numbers))
    return dispatch.client, next((o for o in outputs if isinstance(o, Drop | Merge)), None)


def play(strategy, liars, count, clients=6, **more):
    server = Server(strategy, [1] * clients, seed=3)
    server.start()
    return server, [answer(server, liars, **more) for _ in range(count)]


def test_who_is_dropped_four_times_is_set_aside_and_others_have_its_slot():
    server, story = play(Reputation(strategy=GUARD, half_life=10_000), {2}, 200)
    mine = [decided for client, decided in story if client == 2]
    assert 4 <= len(mine) <= 6
    assert all(isinstance(decided, Drop) for decided in mine)
    assert all("is set aside: 100% of its updates were bad" in decided.reason for decided in mine[4:])
    assert len(server.outstanding) == 4
    assert 2 not in {dispatch.client for dispatch in server.outstanding.values()}


def test_it_comes_back_after_a_half_life_on_probation():
    _, story = play(Reputation(strategy=GUARD, half_life=60), {2}, 600)
    turns = [number for number, (client, _) in enumerate(story) if client == 2]
    gaps = [b - a for a, b in pairwise(turns)]
    long = [gap for gap in gaps if gap > 50]
    assert 3 <= len(long) <= 10
    assert len(turns) < 0.1 * len(story)


def test_who_became_honest_stays():
    server, _ = play(Reputation(strategy=GUARD, half_life=40), {2}, 60)
    story = [answer(server) for _ in range(300)]
    assert sum(client == 2 and isinstance(decided, Merge) for client, decided in story) > 20


def test_most_are_never_set_aside():
    server, _ = play(Reputation(strategy=GUARD, half_life=10_000), {0, 1, 2, 3, 4}, 300)
    assert len(server._state.aside) == 2  # of 6, 4 are more than half
    server, _ = play(Reputation(strategy=GUARD, half_life=10_000, fewest_left=5), {0, 1, 2, 3, 4}, 300)
    assert len(server._state.aside) == 1


def test_suspicion_counts():
    wrapped = AsyncSGD(concurrency=4)
    assert play(Reputation(strategy=wrapped, half_life=10_000), {2}, 150, suspicion=0.9)[0]._state.aside == (2,)
    assert play(Reputation(strategy=wrapped, half_life=10_000), {2}, 150, suspicion=0.5)[0]._state.aside == ()


@pytest.mark.parametrize(
    "wrapped",
    [AFL(concurrency=3), FedBuff(concurrency=4, buffer_size=3), FedAvg(cohort_size=3)],
    ids=["afl", "fedbuff", "fedavg"],
)
def test_it_passes_around_others(wrapped):
    check_strategy(Reputation(strategy=wrapped, half_life=5))


@pytest.mark.parametrize("name", algorithms())
def test_with_nobody_dropped_nothing_changes(name):
    """Around any algorithm, as long as nothing is set aside, decisions are those of the algorithm itself."""
    wrapped = algorithms()[name].make(3, Work(), ConstantRate())
    one, other = Server(wrapped, [1] * 4), Server(Reputation(strategy=wrapped, threshold=1.0, half_life=10**9), [1] * 4)
    assert one.start() == other.start()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"threshold": 0.0}, r"threshold is 0\.0"),
        ({"half_life": 0}, "half_life is 0"),
        ({"fewest_left": 0}, "fewest_left is 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        Reputation(strategy=GUARD, **settings)


def test_liars_speak_less_and_runs_can_be_resumed(tiny, trusted, events):
    zeno = Zeno(concurrency=4, train_trusted=True, refresh=1, eps=1e-6, server_lr=0.3, work=WORK)
    experiment = tiny(
        clients=7, strategy=Reputation(strategy=zeno, half_life=100), delays=DELAYS, budget=Budget(updates=60)
    )
    run = trusted(af.replace(experiment, attack=Liars(attack=SignFlip(scale=10.0), clients=(3, 5))))
    reports = [event.client for event in events(run, "report")]
    assert sum(client in (3, 5) for client in reports) < 0.25 * len(reports)  # of tickets they would have 2/7


def test_a_client_whose_every_ticket_is_lost_does_not_stop_afl():
    """Its slot goes to others; with as many tickets as clients it is asked again, and others go on."""
    for concurrency in (2, 4):
        server = Server(AFL(concurrency=concurrency, max_staleness=3, when_stale="wait"), [1] * 4)
        server.start()
        for _ in range(200):
            dispatch = next(iter(server.outstanding.values()))
            if dispatch.client == 1:
                server.lose(dispatch.ticket)
            else:
                server.receive(Report(dispatch.ticket, dispatch.client, 1.0, 1.0, 1))
            assert len(server.outstanding) + len(server.waiting) == concurrency
        assert server.updates > 80
