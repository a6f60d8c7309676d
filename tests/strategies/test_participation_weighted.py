"""Inverse participation weights around any strategy: traces by hand, and the same as FedAsync's own weighting."""

import time

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Merge, Report
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff, ParticipationWeighted
from asyncfed.testing import check_strategy


@pytest.mark.parametrize(
    "inner",
    [FedAsync(concurrency=3), FedBuff(concurrency=3, buffer_size=2), FedAvg(cohort_size=3), AFL(aggregate="mixing")],
    ids=["fedasync", "fedbuff", "fedavg", "afl_mixing"],
)
def test_any_strategy_conforms_when_weighted(inner):
    check_strategy(ParticipationWeighted(strategy=inner))


def test_around_fedasync_it_decides_as_its_own_weighting():
    plain = FedAsync(concurrency=3)
    assert decisions(ParticipationWeighted(strategy=plain)) == decisions(
        FedAsync(concurrency=3, weighting="inverse_participation")
    )


def decisions(strategy, steps=50):
    server = Server(strategy, [1] * 5)
    made = [server.start()]
    for step in range(steps):
        tickets = list(server.outstanding)
        ticket = tickets[0] if step % 4 == 3 else tickets[-1]
        made.append(server.receive(Report(ticket, server.outstanding[ticket].client, float(step), 1.0, 1)))
    return made


def test_weights_of_a_mean_still_add_up_to_one():
    server = Server(ParticipationWeighted(strategy=FedAvg(cohort_size=2, weighting="equal")), [1, 1, 1], seed=3)
    outputs, merges = server.start(), []
    for step in range(12):
        tickets = list(server.outstanding)
        outputs = server.receive(Report(tickets[0], server.outstanding[tickets[0]].client, float(step), 1.0, 1))
        merges += [output for output in outputs if isinstance(output, Merge)]
    assert all(abs(sum(merge.weights) - 1.0) < 1e-12 and merge.keep == 0.0 for merge in merges)
    assert any(len(set(merge.weights)) == 2 for merge in merges)


def test_it_does_not_go_with_a_rule_that_has_weights_of_its_own():
    server = Server(ParticipationWeighted(strategy=AFL(concurrency=1)), [1, 1])
    (first,) = server.start()
    with pytest.raises(ConfigError, match=r'a merge by "latest_average", which has its own weights; wrap'):
        server.receive(Report(first.ticket, first.client, 0.0, 1.0, 1))


@pytest.mark.parametrize(
    "strategy",
    [
        FedAsync(concurrency=2, weighting="inverse_participation"),
        AFL(concurrency=2, aggregate="delta_mean", weighting="inverse_participation"),
        ParticipationWeighted(strategy=FedAsync(concurrency=2)),
    ],
    ids=["fedasync", "afl", "wrapped"],
)
def test_an_update_costs_the_same_whatever_the_number_of_clients(strategy):
    """Counting by copying cost 700 µs an update at 10,000 clients; the limit is a factor, measured here and now."""
    few, many = (min(seconds_per_update(strategy, clients) for _ in range(5)) for clients in (10, 20_000))
    assert many < 4 * few


def seconds_per_update(strategy, num_clients, updates=300):
    server = Server(strategy, [1] * num_clients)
    server.start()
    began = time.process_time()
    for step in range(updates):
        ticket = next(iter(server.outstanding))
        server.receive(Report(ticket, server.outstanding[ticket].client, float(step), 1.0, 1))
    return (time.process_time() - began) / updates
