"""AFLGuard: whom it accepts, its limits, an attack with and without it, and that a run of it can be trusted."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Drop, Merge, Report, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.problems.linear import Linear
from asyncfed.store.schema import REPORT
from asyncfed.strategies import AFL, AFLGuard
from asyncfed.strategies.schedules import ConstantRate

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
DELAYS = Delays(compute=Exponential(mean=1.0), dropout=0.05)


def decide(strategy, distance, trusted_norm):
    """What is decided of the first report."""
    server = Server(strategy, [1] * 6)
    first, *_ = server.start()
    numbers = {"distance": distance, "trusted_norm": trusted_norm}
    return server.receive(Report(first.ticket, first.client, 1.0, 1.0, 1, numbers))[0]


def test_by_hand():
    """lambda = 1.5, |g_s| = 2: up to 3 is accepted."""
    assert decide(AFLGuard(server_lr=0.5), 3.0, 2.0) == Merge((0,), (0.5,), keep=1.0, of="delta")
    rejected = decide(AFLGuard(), 3.25, 2.0)
    assert rejected == Drop(0, "distance 3.25 is above 1.5 times trusted_norm 2")
    assert isinstance(decide(AFLGuard(), float("nan"), 2.0), Drop)
    assert isinstance(decide(AFLGuard(), inf, 2.0), Drop)


def test_a_trusted_change_of_zero_rejects_all_but_zero():
    assert isinstance(decide(AFLGuard(), 1e-300, 0.0), Drop)
    assert isinstance(decide(AFLGuard(), 0.0, 0.0), Merge)


@given(norm=st.floats(1e-6, 1e6), factor=st.floats(0.01, 0.999))
def test_below_one_a_change_of_zero_is_rejected(norm, factor):
    assert isinstance(decide(AFLGuard(distance_factor=factor), norm, norm), Drop)  # |0 - g_s| = |g_s|


def test_the_trusted_client_gets_no_ticket_unless_nobody_else_is_here():
    server = Server(AFLGuard(concurrency=2, trusted_client=1), [1] * 3)
    numbers = {"distance": 0.0, "trusted_norm": 1.0}
    server.start()
    for _ in range(30):
        assert {d.client for d in server.outstanding.values()} == {0, 2}
        dispatch = next(iter(server.outstanding.values()))
        server.receive(Report(dispatch.ticket, dispatch.client, 1.0, 1.0, 1, numbers))
    server.leave(0)
    server.leave(2)
    assert {d.client for d in server.outstanding.values()} == {1}
    server.join(0, 1)
    assert {d.client for d in server.outstanding.values()} == {0, 1}


def test_if_wanted_the_trusted_client_is_drawn_as_others_are():
    server = Server(AFLGuard(concurrency=3, trusted_client=1, train_trusted=True), [1] * 3)
    assert {d.client for d in server.start()} == {0, 1, 2}


@pytest.mark.parametrize(
    ("strategy", "clients", "words"),
    [
        (AFLGuard(trusted_client=6), 6, "strategy.trusted_client is 6; with 6 clients it is at most 5"),
        (AFLGuard(concurrency=6), 6, "strategy.concurrency is 6, but there are only 5 clients"),
        (AFLGuard(trusted_client=-1), 6, "trusted_client is -1; clients are numbered from 0"),
        (AFLGuard(refresh=0), 6, "refresh is 0; it must be at least 1 version"),
    ],
)
def test_what_does_not_fit_is_refused(strategy, clients, words):
    with pytest.raises(ConfigError, match=words):
        strategy.check(clients)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"distance_factor": 0.0}, "strategy.distance_factor is 0.0; it must be above 0"),
        ({"distance_factor": float("nan")}, "strategy.distance_factor is nan"),
        ({"server_lr": 0.0}, "strategy.server_lr is 0.0; it must be a positive number"),
    ],
)
def test_settings_out_of_range_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        AFLGuard(**settings)


def test_with_an_infinite_factor_it_is_plain_asynchronous_sgd(tiny, events):
    plain = AFL(concurrency=4, aggregate="delta_sum", work=WORK, schedule=ConstantRate())
    guarded = AFLGuard(concurrency=4, distance_factor=inf, train_trusted=True, work=WORK)
    one, other = (
        af.run(tiny(clients=6, strategy=s, delays=DELAYS, budget=Budget(updates=80), init="torch"))
        for s in (plain, guarded)
    )
    assert one.params.tobytes() == other.params.tobytes()
    assert one.evaluations["objective"].tolist() == other.evaluations["objective"].tolist()


def test_the_numbers_are_those_of_training_on_the_trusted_clients_rows(tiny):
    """With full batches training needs no draws: the first report is measured against the very same computation."""
    work = Work(epochs=2, batch_size=8, learning_rate=0.05)
    strategy = AFLGuard(concurrency=1, trusted_client=2, refresh=1, work=work)
    experiment = tiny(clients=4, strategy=strategy, budget=Budget(updates=1), init="torch")
    run, problem = af.run(experiment), experiment.problem()
    x = problem.init(0, how="torch")
    report = next(event for event in run.journal.event_rows() if event.kind == REPORT)
    trusted, change = (problem.local_train(x, client, work, 0) - x for client in (2, report.client))
    assert report.metrics["trusted_norm"] == pytest.approx(np.linalg.norm(trusted), rel=1e-12)
    assert report.metrics["distance"] == pytest.approx(np.linalg.norm(change - trusted), rel=1e-12)


# ---- an attack ---------------------------------------------------------------------------------------------------


class SignFlipping(Linear):
    """Some clients send the opposite of what they computed, five times as long."""

    attackers = (3, 4)

    def local_train_many(self, jobs, threads=1):
        starts = jobs.starts.copy()
        models = super().local_train_many(jobs, threads)
        for row, client in enumerate(jobs.clients):
            if client in self.attackers:
                models[row] = starts[row] - 5.0 * (models[row] - starts[row])
        return models


def attacked(tiny, strategy):
    experiment = tiny(
        clients=8, strategy=strategy, delays=Delays(compute=Exponential(mean=1.0)), budget=Budget(updates=150)
    )
    return af.run(experiment, problem=SignFlipping(experiment.clients()))


def test_who_sends_the_opposite_is_kept_out_and_without_it_the_loss_explodes(tiny, events):
    work = replace(WORK, batch_size=8, learning_rate=0.05)
    guarded = AFLGuard(concurrency=4, trusted_client=0, refresh=1, server_lr=0.5, distance_factor=1.5, work=work)
    open_ = replace(guarded, distance_factor=inf)
    safe, unsafe = attacked(tiny, guarded), attacked(tiny, open_)
    first = safe.evaluations["objective"][0]
    assert safe.evaluations["objective"][-1] < 0.2 * first
    assert unsafe.verdict == "diverged" or not unsafe.evaluations["objective"][-1] < 100 * first
    merged = {event.client for event in events(safe, "merge")}
    dropped = [event.client for event in events(safe, "drop")]
    assert not merged & set(SignFlipping.attackers)
    assert set(SignFlipping.attackers) <= set(dropped)


def test_threads_interruptions_and_replay(tiny, trusted, events):
    strategy = AFLGuard(concurrency=4, trusted_client=1, refresh=3, distance_factor=1.2, work=WORK)
    run = trusted(tiny(clients=7, strategy=strategy, delays=DELAYS, budget=Budget(updates=60), init="torch"))
    assert events(run, "drop")
    assert {event.client for event in events(run, "dispatch")} == {0, 2, 3, 4, 5, 6}
