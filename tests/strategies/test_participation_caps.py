"""Caps on participation: they hold whatever arrives when, and the run ends with a sentence when they are reached."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Dispatch, Merge, Report, Stop, Wake
from asyncfed.strategies import FedAsync, FedBuff, Ringmaster
from asyncfed.strategies.bounded_staleness import BoundedStaleness
from asyncfed.strategies.minimum_participation import MinimumParticipation
from asyncfed.strategies.participation_caps import STUCK, ParticipationCaps
from asyncfed.strategies.participation_weighted import ParticipationWeighted
from asyncfed.strategies.samplers import Fair, ShuffledCycle, UniformAll, UniformIdle
from asyncfed.testing import check_strategy

SAMPLERS = [UniformIdle(), ShuffledCycle(), Fair(), MinimumParticipation(gap=0.5)]


class Account:
    """A server that is driven by numbers; written down is who took part in which release, from its outputs alone."""

    def __init__(self, strategy, num_clients):
        self.strategy, self.num_clients = strategy, num_clients
        self.server = Server(strategy, [1] * num_clients, seed=1)
        self.client_of, self.took_part, self.tickets = {}, [[] for _ in range(num_clients)], [0] * num_clients
        self.releases, self.reason = 0, None
        self.note(self.server.start())

    def note(self, outputs):
        for output in outputs:
            if isinstance(output, Dispatch):
                self.client_of[output.ticket] = output.client
                self.tickets[output.client] += 1
            elif isinstance(output, Merge):
                for ticket in output.tickets:
                    self.took_part[self.client_of[ticket]].append(self.releases)
                self.releases += 1
            elif isinstance(output, Stop):
                self.reason = output.reason

    def report(self, ticket):
        self.note(self.server.receive(Report(ticket, self.client_of[ticket], 1.0, 1.0, 1)))

    def put_in(self, choice):
        """One event, chosen by a number: mostly an arrival of any ticket; else a loss, a leave, a join or a resume."""
        server, kind, which = self.server, choice % 16, choice // 16
        here, out = sorted(server.clients), list(server.outstanding)
        away = [client for client in range(self.num_clients) if client not in server.clients]
        if kind == 0 and here:
            self.note(server.leave(here[which % len(here)]))
        elif kind in (1, 2) and away:
            self.note(server.join(away[which % len(away)], 1))
        elif kind == 3 and out:
            self.note(server.lose(out[which % len(out)]))
        elif kind == 4:
            restored = Server(self.strategy, [1] * self.num_clients, seed=1)
            restored.restore(json.loads(json.dumps(server.snapshot())))
            self.server = restored
        elif out:
            self.report(out[which % len(out)])

    def run_out(self):
        """Only arrivals, until the run stops or nothing is out."""
        while self.server.stopped is None and self.server.outstanding:
            self.report(next(iter(self.server.outstanding)))


@st.composite
def settings_of_runs(draw):
    buffer, separation = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    clients = buffer * (separation + 1) + draw(st.integers(0, 6))
    inner = FedBuff(
        concurrency=draw(st.integers(1, clients)), buffer_size=buffer, sampler=draw(st.sampled_from(SAMPLERS))
    )
    return ParticipationCaps(
        strategy=inner, num_clients=clients, participations=draw(st.integers(1, 5)), separation=separation
    )


@given(settings_of_runs(), st.lists(st.integers(0, 16 * 97), max_size=150))
@settings(max_examples=80, deadline=None)
def test_caps_hold_under_any_order_of_arrivals_losses_joins_leaves_and_resumes(caps, choices):
    caps.check(caps.num_clients)
    account = Account(caps, caps.num_clients)
    for choice in choices:
        if account.server.stopped is not None:
            break
        account.put_in(choice)
    account.run_out()
    for releases in account.took_part:
        assert len(releases) <= caps.participations
        assert all(after - before > caps.separation for before, after in itertools.pairwise(releases))
    if account.reason is not None:
        assert account.reason.startswith("privacy budget spent")


@given(st.integers(1, 4), st.integers(1, 6), st.lists(st.integers(0, 16 * 97), max_size=80))
@settings(max_examples=40, deadline=None)
def test_tickets_are_capped_whatever_becomes_of_them(uploads, concurrency, choices):
    inner = FedAsync(concurrency=concurrency)
    caps = ParticipationCaps(strategy=inner, num_clients=6, participations=uploads, counts="tickets")
    account = Account(caps, 6)
    for choice in choices:
        if account.server.stopped is None:
            account.put_in(choice)
    account.run_out()
    assert max(account.tickets) <= uploads


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_budget_is_used_up_and_the_run_says_so(sampler):
    """Everybody is here and nobody lost: with K dividing all, each client takes part exactly as often as it may."""
    inner = FedBuff(concurrency=4, buffer_size=1, sampler=sampler)
    account = Account(ParticipationCaps(strategy=inner, num_clients=8, participations=3), 8)
    account.run_out()
    assert [len(releases) for releases in account.took_part] == [3] * 8
    assert account.reason == (
        "privacy budget spent: 8 of 8 clients have taken part 3 times, and nobody else may take part now"
    )


def test_a_buffer_that_nobody_can_fill_ends_the_run():
    inner = FedBuff(concurrency=3, buffer_size=4)
    account = Account(ParticipationCaps(strategy=inner, num_clients=6, participations=1), 6)
    account.run_out()
    assert account.releases == 1
    assert "2 wait in a buffer that nobody can fill" in account.reason


def test_all_who_may_are_at_work_at_once_after_a_merge():
    """The merge frees its clients for the tickets of the same decision; nobody would ask again."""
    account = Account(
        ParticipationCaps(strategy=FedBuff(concurrency=4, buffer_size=4), num_clients=4, participations=9), 4
    )
    for _ in range(4):
        account.report(next(iter(account.server.outstanding)))
    assert account.releases == 1
    assert len(account.server.outstanding) == 4


def test_clients_that_are_away_are_waited_for_but_not_for_ever():
    caps = ParticipationCaps(strategy=FedBuff(concurrency=2, buffer_size=2), num_clients=2, participations=3, wait=60.0)
    server = Server(caps, [1, 1], absent=[1])
    server.start()
    outputs = server.receive(Report(0, 0, 1.0, 1.0, 1))
    assert outputs == [Wake(60.0, STUCK)]
    assert server.snapshot()["state"]["waits"]
    stop = server.wake(STUCK, 61.0)
    assert isinstance(stop[0], Stop)
    assert stop[0].reason.startswith("privacy budget spent")


def test_a_strategy_that_counts_in_place_counts_every_merge_once():
    inner = ParticipationWeighted(strategy=FedBuff(concurrency=4, buffer_size=2))
    account = Account(ParticipationCaps(strategy=inner, num_clients=8, participations=3), 8)
    account.run_out()
    merged = sum(len(releases) for releases in account.took_part)
    state = account.server.snapshot()["state"]["inner"]
    assert sum(state["merges"]) == state["total_merges"] == merged > 8


def test_so_many_releases_end_the_run():
    inner = FedBuff(concurrency=2, buffer_size=2)
    account = Account(ParticipationCaps(strategy=inner, num_clients=4, participations=9, releases=3), 4)
    account.run_out()
    assert (account.releases, account.reason) == (3, "privacy budget spent: all 3 releases are made")


@pytest.mark.parametrize(
    "strategy",
    [
        ParticipationCaps(strategy=FedBuff(concurrency=3, buffer_size=2), num_clients=5, participations=1000),
        ParticipationCaps(
            strategy=FedBuff(concurrency=2, buffer_size=2), num_clients=5, participations=9, separation=1
        ),
        ParticipationCaps(strategy=FedAsync(concurrency=3), num_clients=5, participations=1000, counts="tickets"),
        ParticipationCaps(
            strategy=BoundedStaleness(strategy=FedBuff(concurrency=3, buffer_size=2), max_staleness=1),
            num_clients=5,
            participations=1000,
        ),
        ParticipationCaps(strategy=Ringmaster(concurrency=3), num_clients=5, participations=1000),
    ],
)
def test_it_can_be_simulated_deployed_and_resumed(strategy):
    check_strategy(strategy)


def test_what_cannot_be_capped_is_refused():
    queueing = FedBuff(concurrency=2, buffer_size=2, sampler=UniformAll())
    with pytest.raises(ConfigError, match="uniform_idle"):
        ParticipationCaps(strategy=queueing, num_clients=4, participations=2).check(4)
    with pytest.raises(ConfigError, match="8 clients are needed and there are 6"):
        ParticipationCaps(
            strategy=FedBuff(concurrency=2, buffer_size=4), num_clients=6, participations=2, separation=1
        ).check(6)
    for field in ("num_clients", "participations", "releases"):
        with pytest.raises(ConfigError, match=f"strategy.{field} is 0"):
            ParticipationCaps(**{"strategy": FedBuff(), "num_clients": 4, "participations": 2, field: 0})
    with pytest.raises(ConfigError, match="is about merges"):
        ParticipationCaps(strategy=FedBuff(), num_clients=4, participations=2, separation=1, counts="tickets")
    with pytest.raises(ConfigError, match="which may not take part now"):
        Account(ParticipationCaps(strategy=queueing, num_clients=1, participations=9), 1)
