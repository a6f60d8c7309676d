"""The three dispatch policies: what each strategy says of itself, and what goes out when."""

import pytest

from asyncfed.core.server import Server
from asyncfed.core.types import Dispatch, Report
from asyncfed.strategies import (
    AFL,
    BoundedStaleness,
    CyclicWeightTransfer,
    Dispatching,
    DispatchPolicy,
    FedAsync,
    FedAvg,
    FedBuff,
    ParticipationWeighted,
    PublishedScripts,
)


@pytest.mark.parametrize(
    ("strategy", "policy", "round_size"),
    [
        (AFL(concurrency=3), DispatchPolicy("keep_busy", 3), 3),
        (FedAsync(concurrency=3), DispatchPolicy("keep_busy", 3), 3),
        (FedBuff(concurrency=3, buffer_size=7), DispatchPolicy("keep_busy", 3, 7), 7),
        (FedAvg(cohort_size=3), DispatchPolicy("cohort", 3, 3), 3),
        (PublishedScripts(cohort_size=3), DispatchPolicy("cohort", 3, 1), 3),
        (CyclicWeightTransfer(), DispatchPolicy("sequential", 1), 9),
        (CyclicWeightTransfer(round_length=4), DispatchPolicy("sequential", 1), 4),
        (BoundedStaleness(strategy=FedAsync(concurrency=2), max_staleness=1), DispatchPolicy("keep_busy", 2), 2),
        (ParticipationWeighted(strategy=FedAvg(cohort_size=2)), DispatchPolicy("cohort", 2, 2), 2),
    ],
)
def test_every_shipped_strategy_says_how_it_dispatches(strategy, policy, round_size):
    assert isinstance(strategy, Dispatching)
    assert strategy.dispatch == policy
    assert strategy.round_size(9) == round_size


def test_a_wrapper_around_a_strategy_that_does_not_say_does_not_say_either():
    class Silent:
        work = FedAsync().work

    assert not isinstance(ParticipationWeighted(strategy=Silent()), Dispatching)


@pytest.mark.parametrize("strategy", [FedAsync(concurrency=3), FedBuff(concurrency=3), AFL(concurrency=3)])
def test_keep_busy_sends_one_ticket_for_each_that_comes_back_or_is_lost(strategy):
    server = Server(strategy, [1] * 5)
    assert len(server.start()) == 3
    ticket = next(iter(server.outstanding))
    assert dispatched(server.receive(report(server, ticket))) == 1
    assert dispatched(server.lose(next(iter(server.outstanding)))) == 1
    assert len(server.outstanding) == 3


@pytest.mark.parametrize("strategy", [FedAvg(cohort_size=3), PublishedScripts(cohort_size=3)])
def test_a_cohort_goes_out_when_the_one_before_is_complete(strategy):
    server = Server(strategy, [1] * 5)
    first, second, third = (output.ticket for output in server.start())
    assert dispatched(server.receive(report(server, second))) == 0
    assert dispatched(server.lose(first)) == 0
    assert dispatched(server.receive(report(server, third))) == 3


def test_a_cohort_that_is_lost_whole_is_followed_by_another_without_a_merge():
    server = Server(FedAvg(cohort_size=2), [1] * 4)
    first, second = (output.ticket for output in server.start())
    server.lose(first)
    assert dispatched(server.lose(second)) == 2
    assert server.version == 0


def test_one_by_one_has_one_ticket_out():
    server = Server(CyclicWeightTransfer(), [1] * 3)
    server.start()
    for _ in range(7):
        (ticket,) = server.outstanding
        assert dispatched(server.receive(report(server, ticket))) == 1


def dispatched(outputs):
    return sum(isinstance(output, Dispatch) for output in outputs)


def report(server, ticket):
    return Report(ticket, server.outstanding[ticket].client, 0.0, 1.0, 1)
