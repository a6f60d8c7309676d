"""Kardam: both filters by hand, its limits, both readings, and a liar."""

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Drop, Merge, Report, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.rules import Arrival, LipschitzCoefficients, RuleRun
from asyncfed.strategies import Kardam

WORK = Work(epochs=1, batch_size=8, learning_rate=0.05)
DELAYS = Delays(compute=Exponential(mean=1.0))


def report(server, client, coefficient=None, limit=None):
    """What is decided of the client's report."""
    [dispatch] = [d for d in server.outstanding.values() if d.client == client]
    numbers = {} if limit is None else {"coefficient": coefficient, "coefficient_limit": limit}
    outputs = server.receive(Report(dispatch.ticket, client, 1.0, 1.0, 1, numbers))
    return next(output for output in outputs if isinstance(output, Merge | Drop))


def started(strategy, clients=4):
    server = Server(strategy, [1] * clients)
    server.start()
    return server


def test_the_lipschitz_filter_and_the_damping():
    server = started(Kardam(concurrency=4, damping=0.5, server_lr=2.0))
    assert report(server, 0).weights == (2.0,)  # the first is accepted
    assert report(server, 1, 3.0, 3.0).weights == (2.0 * exp(-0.5),)
    assert report(server, 2, 3.5, 3.0).reason == "coefficient 3.5 is above the limit 3"
    assert isinstance(report(server, 3, float("nan"), 3.0), Drop)


def test_with_one_liar_nobody_is_accepted_twice_in_three():
    server, merged = started(Kardam(concurrency=4)), []
    for client in [0, 0, 1, 1, 0, 2, 0, 0, 3, 2, 1, 3]:
        if isinstance(report(server, client), Merge):
            merged.append(client)
    assert merged == [0, 1, 2, 0, 3, 2, 1, 3]
    assert all(len(set(merged[i : i + 3])) == 3 for i in range(len(merged) - 2))


@given(clients=st.lists(st.integers(0, 6), min_size=5, max_size=60))
def test_any_2f_plus_1_accepted_have_f_plus_1_that_cannot_be_the_busiest(clients):
    server, merged = started(Kardam(concurrency=7, liars=2), 7), []
    for client in clients:
        if isinstance(report(server, client), Merge):
            merged.append(client)
    for i in range(len(merged)):
        window = merged[max(0, i - 4) : i + 1]
        assert sum(sorted((window.count(c) for c in set(window)), reverse=True)[:2]) <= 2


@given(numbers=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 9), st.floats(0, 9)), max_size=30))
def test_without_liars_all_is_accepted(numbers):
    server = started(Kardam(concurrency=4, liars=0))
    assert all(isinstance(report(server, *each), Merge) for each in numbers)


def test_the_escape_of_the_code_comes_after_as_many_rejections_as_clients():
    for escape, last in ((True, Merge), (False, Drop)):
        server = started(Kardam(concurrency=4, reading="code", escape=escape))
        assert all(isinstance(report(server, 0, 9.0, 1.0), Drop) for _ in range(4))
        assert isinstance(report(server, 0, 9.0, 1.0), last)
        assert isinstance(report(server, 0, 9.0, 1.0), Drop)


def measured(rule, reports, x=(0.0,)):
    """What is measured of each (client, start, change); all are merged, and the model is that of the next start."""
    run, found = RuleRun(rule, np.zeros(1), 4), []
    for ticket, (client, start, change) in enumerate(reports):
        begun = np.array([float(start)])
        arrival = Arrival(ticket, client, 1.0, 0, WORK, 1, 1, begun, begun + change)
        numbers = run.measure(begun, arrival, None)
        found.append((numbers.get("coefficient"), numbers.get("coefficient_limit")))
        run.step(begun, [arrival], Merge((ticket,), (1.0,)), 0)
    return found


def test_coefficients_of_the_paper_by_hand():
    """Client 0: |6 - 2| / |2 - 0| = 2; client 1: |9 - 1| / |3 - 1| = 4; of n = 4 and f = 1, the 3/4 quantile."""
    reports = [(0, 0, 2.0), (1, 1, 1.0), (0, 2, 6.0), (1, 3, 9.0), (0, 3, 7.0), (0, 3, 8.0)]
    found = measured(LipschitzCoefficients(liars=1), reports)
    assert found[:4] == [(None, None), (None, None), (2.0, 2.0), (4.0, 4.0)]
    assert found[4:] == [(1.0, 4.0), (1.0, 4.0)]  # the same model again: nothing new is known


def test_coefficients_of_the_code_by_hand():
    """The candidate against the change merged last, over the last move; the limit of each client's largest."""
    reports = [(0, 0, 2.0), (1, 1, 1.0), (0, 2, 6.0), (1, 3, 9.0), (0, 5, 7.0)]
    found = measured(LipschitzCoefficients(reading="code"), reports)
    assert found[2:] == [(5.0, 2.0), (3.0, 4.0), (1.0, 4.0)]


def test_what_cannot_work_is_refused():
    with pytest.raises(ConfigError, match=r"strategy\.liars is 2, which needs at least 7 clients; there are 6"):
        Kardam(liars=2).check(6)
    with pytest.raises(ConfigError, match=r"strategy\.liars is -1"):
        Kardam(liars=-1)
    with pytest.raises(ConfigError, match=r"rule\.window is 0"):
        LipschitzCoefficients(window=0)


def test_fewer_lies_are_merged(tiny, events):
    strategy = Kardam(concurrency=7, liars=2, server_lr=0.2, work=WORK)
    experiment = tiny(clients=7, strategy=strategy, delays=DELAYS, budget=Budget(updates=100))
    run = af.run(af.replace(experiment, attack=Liars(attack=SignFlip(scale=10.0), clients=(1,))))
    merged = [event.client for event in events(run, "merge")]
    assert merged.count(1) < 0.1 * len(merged)
    assert run.evaluations["objective"][-1] < run.evaluations["objective"][0]


@pytest.mark.parametrize("reading", ["paper", "code"])
def test_threads_interruptions_and_replay(tiny, trusted, reading):
    strategy = Kardam(concurrency=4, reading=reading, escape=True, server_lr=0.2, work=WORK)
    trusted(tiny(clients=7, strategy=strategy, delays=DELAYS, budget=Budget(updates=40)))
