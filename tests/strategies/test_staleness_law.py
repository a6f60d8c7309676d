"""An exact law of every asynchronous run, whatever its delays.

With C tickets always out, a new one sent the instant one is merged, after T merges

    sum(staleness of what was merged) + sum(age of what is out) = (C - 1) T

because every merge makes each of the C - 1 other tickets one version older. With a buffer T counts flushes, and what
lies in the buffer counts as well. It fails if staleness is counted from 1, or after the version is raised, or if work
is lost.
"""

import json
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.record import replace
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Merge, Report, Work
from asyncfed.delays import Delays, Exponential, LogNormal
from asyncfed.strategies import AFL, AFLGuard, FedAsync, FedBuff, ParticipationWeighted, Ringmaster
from asyncfed.strategies.samplers import Fair, UniformAll

WORK = Work(epochs=1, batch_size=4, learning_rate=0.001)
ON_ARRIVAL = {
    "fedasync": FedAsync(),
    "fedasync_queueing": FedAsync(sampler=UniformAll()),
    "fedasync_weighted": ParticipationWeighted(strategy=FedAsync()),
    "afl_latest": AFL(aggregate="latest"),
    "afl_mixing": AFL(aggregate="mixing"),
    "afl_delta_mean": AFL(aggregate="delta_mean", sampler=Fair()),
    "afl_delta_sum": AFL(aggregate="delta_sum"),
    "aflguard": AFLGuard(distance_factor=inf, train_trusted=True),
    "ringmaster": Ringmaster(staleness_threshold=10**9),
}
NUMBERS = {"distance": 0.0, "trusted_norm": 0.0}
"""What AFLGuard decides by."""


def with_concurrency(strategy, count):
    if isinstance(strategy, ParticipationWeighted):
        return replace(strategy, strategy=replace(strategy.strategy, concurrency=count))
    return replace(strategy, concurrency=count)


def drive(strategy, seed, arrivals):
    """Reports in random order. Answers with the server, the staleness of what was merged, and what is in a buffer."""
    server = Server(strategy, [1] * 6, seed)
    server.start()
    chance, merged, waiting = Stream(purpose_key(seed, "order")), [], {}
    for _ in range(arrivals):
        tickets = list(server.outstanding)
        dispatch = server.outstanding[tickets[chance.below(len(tickets))]]
        version = server.version
        waiting[dispatch.ticket] = dispatch.base_version
        for output in server.receive(Report(dispatch.ticket, dispatch.client, 0.0, chance.unit(), 1, NUMBERS)):
            if isinstance(output, Merge):
                merged += [version - waiting.pop(ticket) for ticket in output.tickets]
                version += 1
    return server, merged, [server.version - base for base in waiting.values()]


def ages(server):
    return [server.version - dispatch.base_version for dispatch in server.outstanding.values()]


@pytest.mark.parametrize("strategy", ON_ARRIVAL.values(), ids=ON_ARRIVAL)
@given(seed=st.integers(0, 2**32), concurrency=st.integers(1, 6), arrivals=st.integers(0, 80))
@settings(max_examples=25, deadline=None)
def test_merged_on_arrival(strategy, seed, concurrency, arrivals):
    server, merged, waiting = drive(with_concurrency(strategy, concurrency), seed, arrivals)
    assert waiting == []
    assert server.version == len(merged) == arrivals
    assert sum(merged) + sum(ages(server)) == (concurrency - 1) * arrivals


@given(seed=st.integers(0, 2**32), concurrency=st.integers(1, 6), size=st.integers(1, 7), arrivals=st.integers(0, 120))
@settings(max_examples=60, deadline=None)
def test_with_a_buffer_it_counts_flushes(seed, concurrency, size, arrivals):
    server, merged, waiting = drive(FedBuff(concurrency=concurrency, buffer_size=size), seed, arrivals)
    flushes = arrivals // size
    assert (server.version, len(merged), len(waiting)) == (flushes, flushes * size, arrivals % size)
    assert sum(merged) + sum(waiting) + sum(ages(server)) == (concurrency - 1) * flushes


@pytest.mark.parametrize(
    "delays", [Delays(), Delays(compute=Exponential(mean=1.0)), Delays(compute=LogNormal(median=1.0, sigma=1.5))]
)
@pytest.mark.parametrize("strategy", ON_ARRIVAL.values(), ids=ON_ARRIVAL)
def test_in_the_journal_of_a_simulated_run(tiny, events, strategy, delays):
    strategy = with_concurrency(strategy, 4)
    if isinstance(strategy, ParticipationWeighted):
        strategy = replace(strategy, strategy=replace(strategy.strategy, work=WORK))
    else:
        strategy = replace(strategy, work=WORK)
    run = af.run(tiny(clients=6, strategy=strategy, delays=delays, budget=Budget(updates=60)), threads=1)
    base, merged = {}, 0
    for event in events(run):
        if event.kind == "dispatch":
            base[event.ticket] = event.version
        elif event.kind == "merge":
            merged += event.version - 1 - base.pop(event.ticket)
            assert "tickets" not in json.loads(event.detail)
    # The last merge ends the run before its ticket is replaced; a new one would be of age 0.
    assert len(base) == 3
    assert merged + sum(60 - version for version in base.values()) == 3 * 60
