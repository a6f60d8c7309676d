"""Predictions against chains solved by brute force, against exact fractions, and against the simulator itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import asyncfed as af
from asyncfed.analysis.participation import predicted_participation
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.data import InOrder, PaperRegression
from asyncfed.delays import Constant, Delays, Device, Exponential, LogNormal
from asyncfed.engine.evaluation import Evaluation
from asyncfed.store.schema import DISPATCH, MERGE
from asyncfed.strategies import AFL
from asyncfed.strategies.samplers import UniformAll, UniformIdle, Weighted
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.theory.queueing import cohort_dispatch, idle_dispatch, queued_dispatch

# ---- brute force: a chain of single tickets ------------------------------------------------------------------
#
# A state is the list of tickets in order of dispatch, each the number of its client; a client works on its oldest. From
# the chain follow shares and throughput, and, by following one ticket until it reports, its staleness.


class Chain:
    """The Markov chain of exponential clients with these mean durations; `route(rest)` gives (client, chance) pairs."""

    def __init__(self, means, in_flight, route):
        self.means, self.route = means, route
        clients = range(len(means))
        states = {s for s in product(clients, repeat=in_flight) if self._reachable(s)}
        self.states = sorted(states)
        self.number = {state: i for i, state in enumerate(self.states)}
        rates = np.zeros((len(states), len(states)))
        for state in self.states:
            for place, chance, following in self._moves(state):
                rates[self.number[state], self.number[following]] += chance / means[state[place]]
        generator = rates - np.diag(rates.sum(axis=1))
        system = np.vstack([generator.T, np.ones(len(states))])
        self.law = np.linalg.lstsq(system, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]

    def _reachable(self, state):
        """Only states that dispatching can lead to: without queues, no client twice."""
        return all(dict(self.route(state[:place])).get(client, 0) > 0 for place, client in enumerate(state))

    def _served(self, state):
        """The places of the tickets that are being worked on."""
        return [place for place, client in enumerate(state) if client not in state[:place]]

    def _moves(self, state):
        for place in self._served(state):
            rest = state[:place] + state[place + 1 :]
            for client, chance in self.route(rest):
                yield place, chance, (*rest, client)

    def reports(self):
        """Reports per second of each client."""
        per_second = np.zeros(len(self.means))
        for state, chance in zip(self.states, self.law, strict=True):
            for place in self._served(state):
                per_second[state[place]] += chance / self.means[state[place]]
        return per_second

    def tickets(self):
        return np.array(
            [sum(p * s.count(c) for s, p in zip(self.states, self.law, strict=True)) for c in range(len(self.means))]
        )

    def staleness(self):
        """Mean merges before the newest ticket's own, by first-step analysis over (state, its place)."""
        in_flight = len(self.states[0])
        pairs = [(state, place) for state in self.states for place in range(in_flight)]
        index = {pair: i for i, pair in enumerate(pairs)}
        system, others = np.eye(len(pairs)), np.zeros(len(pairs))
        for (state, tagged), row in index.items():
            total = sum(1 / self.means[state[place]] for place in self._served(state))
            for place, chance, following in self._moves(state):
                weight = chance / self.means[state[place]] / total
                if place != tagged:
                    system[row, index[following, tagged - (place < tagged)]] -= weight
                    others[row] += weight
        mean = np.linalg.solve(system, others)
        sums, counts = np.zeros(len(self.means)), np.zeros(len(self.means))
        for state, chance in zip(self.states, self.law, strict=True):
            for place, draw, following in self._moves(state):
                flow = chance * draw / self.means[state[place]]
                sums[following[-1]] += flow * mean[index[following, in_flight - 1]]
                counts[following[-1]] += flow
        return sums / counts


def anyone(chances):
    return lambda rest: [(client, chance) for client, chance in enumerate(chances) if chance > 0]


def idle_ones(weights):
    def route(rest):
        idle = {client: weight for client, weight in enumerate(weights) if client not in rest}
        return [(client, weight / sum(idle.values())) for client, weight in idle.items()]

    return route


MEANS = (0.4, 1.0, 2.5, 7.0)


def agrees(prediction, chain):
    reports = chain.reports()
    assert prediction.throughput == pytest.approx(reports.sum(), rel=1e-9)
    np.testing.assert_allclose(prediction.share, reports / reports.sum(), rtol=1e-9)
    np.testing.assert_allclose(prediction.tickets, chain.tickets(), rtol=1e-9)
    np.testing.assert_allclose(prediction.sojourn, chain.tickets() / reports, rtol=1e-9)
    np.testing.assert_allclose(prediction.staleness, chain.staleness(), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(("clients", "in_flight"), [(1, 1), (1, 3), (2, 1), (2, 3), (3, 2), (3, 3), (4, 2), (3, 4)])
def test_queued_dispatch_solves_the_chain(clients, in_flight):
    means, chances = MEANS[:clients], np.arange(1.0, clients + 1)
    chances /= chances.sum()
    agrees(queued_dispatch(means, in_flight, chances), Chain(means, in_flight, anyone(chances)))


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 2, 5, 0.5)])
@pytest.mark.parametrize(("clients", "in_flight"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (4, 3), (4, 4)])
def test_idle_dispatch_solves_the_chain(clients, in_flight, weights):
    means = MEANS[:clients]
    agrees(idle_dispatch(means, in_flight, weights[:clients]), Chain(means, in_flight, idle_ones(weights[:clients])))


def test_transfers_are_stages_without_a_queue():
    """A client with a transfer before its work is two stations: one it shares with nobody, one with a queue."""
    means, transfer, in_flight = (0.5, 2.0), (1.5, 0.7), 3
    demands = [(0.5 * 0.5, 0.5 * 2.0), 0.5 * 1.5 + 0.5 * 0.7]

    def placements(tickets):
        queues, think = demands
        ways = [n for n in product(range(tickets + 1), repeat=3) if sum(n) == tickets]
        return sum(queues[0] ** a * queues[1] ** b * think**z / prod(range(1, z + 1)) for a, b, z in ways)

    prediction = queued_dispatch(means, in_flight, mean_transfer=transfer)
    assert prediction.throughput == pytest.approx(placements(2) / placements(3))
    assert prediction.tickets.sum() == pytest.approx(3)
    assert prediction.mean_staleness == pytest.approx(2)


def test_idle_dispatch_keeps_its_digits_over_six_orders_of_magnitude():
    means = [Fraction(10) ** k for k in range(-3, 4)]
    for in_flight in range(1, 8):
        total = sum(prod(s) for s in combinations(means, in_flight))
        exact = []
        for client in range(7):
            others = means[:client] + means[client + 1 :]
            exact.append(float(means[client] * sum(prod(s) for s in combinations(others, in_flight - 1)) / total))
        prediction = idle_dispatch([float(m) for m in means], in_flight)
        np.testing.assert_allclose(prediction.utilisation, exact, rtol=1e-9)


def test_everybody_at_work_is_merged_as_often_as_it_is_fast():
    prediction = idle_dispatch([1.0, 2.0, 4.0], 3)
    np.testing.assert_allclose(prediction.share, np.array([4, 2, 1]) / 7)
    np.testing.assert_allclose(prediction.staleness, [0.75, 2.5, 6.0])  # Σ_{d≠c} m_c / m_d


def test_many_clients_are_no_trouble():
    means = np.geomspace(1.0, 100.0, 10_000)
    for prediction in (queued_dispatch(means, 1000), idle_dispatch(means, 1000)):
        assert prediction.tickets.sum() == pytest.approx(1000)
        assert prediction.mean_staleness == pytest.approx(999)
        assert np.all(np.diff(prediction.staleness) > 0)
    assert queued_dispatch(np.ones(10_000), 1000).throughput == pytest.approx(10_000 * 1000 / 10_999)


@given(st.data(), st.lists(st.floats(0.01, 100.0), min_size=1, max_size=30))
@settings(max_examples=80, deadline=None)
def test_what_every_prediction_keeps(data, means):
    in_flight = data.draw(st.integers(1, len(means)))
    stretch = data.draw(st.floats(0.01, 100.0))
    for predict in (queued_dispatch, idle_dispatch):
        now, later = predict(means, in_flight), predict(np.array(means) * stretch, in_flight)
        assert now.share.sum() == pytest.approx(1)
        assert now.tickets.sum() == pytest.approx(in_flight)
        assert now.mean_staleness == pytest.approx(in_flight - 1, abs=1e-9)
        assert np.all((now.utilisation >= 0) & (now.utilisation <= 1 + 1e-12))
        np.testing.assert_allclose(now.client_throughput * now.sojourn, now.tickets, rtol=1e-9)
        np.testing.assert_allclose(later.share, now.share, rtol=1e-6, atol=1e-15)
        assert later.throughput * stretch == pytest.approx(now.throughput)
        slowest_first = np.argsort(means)[::-1]
        assert np.all(np.diff(now.share[slowest_first]) >= -1e-12)
        assert np.all(np.diff(now.staleness[slowest_first]) <= 1e-9)


@pytest.mark.parametrize("cohort_size", [1, 2, 3])
def test_a_round_of_a_cohort_takes_its_longest(cohort_size):
    means = [0.5, 1.0, 4.0]

    def longest(rates):  # E max by inclusion and exclusion
        subsets = [s for k in range(1, len(rates) + 1) for s in combinations(rates, k)]
        return sum((-1) ** (len(s) + 1) / sum(s) for s in subsets)

    rounds = [longest([1 / m for m in cohort]) for cohort in combinations(means, cohort_size)]
    prediction = cohort_dispatch(means, cohort_size)
    assert cohort_size / prediction.throughput == pytest.approx(np.mean(rounds), rel=1e-9)
    assert prediction.share.tolist() == pytest.approx([1 / 3] * 3)
    assert prediction.jain_index == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: idle_dispatch([1.0, np.inf], 1), r"mean_service\[1\] is infinite.*Pareto shape of 1 or less"),
        (lambda: queued_dispatch([np.inf], 1), "no long run to predict"),
        (
            lambda: idle_dispatch([1.0, 0.0], 1),
            r"mean_service\[1\] is 0.0; a mean duration must be a number above zero",
        ),
        (lambda: queued_dispatch([1.0, np.nan], 1), "zero or more"),
        (lambda: queued_dispatch([0.0, 0.0], 1), "takes 0 s"),
        (lambda: idle_dispatch([1.0, 1.0], 3), "in_flight is 3, but only 2 clients may be drawn"),
        (lambda: idle_dispatch([1.0, 1.0], 2, [1.0, 0.0]), "only 1 clients may be drawn"),
        (lambda: idle_dispatch([1.0], 0), "0 tickets in flight"),
        (lambda: queued_dispatch([1.0, 1.0], 1, [1.0]), r"routing has shape \(1,\), but there are 2"),
        (lambda: queued_dispatch([1.0, 1.0], 1, [-1.0, 2.0]), "zero or more, and not all zero"),
        (lambda: cohort_dispatch([1.0], 2), "cohort_size is 2, but there are only 1"),
        (lambda: idle_dispatch([[1.0]], 1), "one number of seconds per client"),
    ],
)
def test_what_cannot_be_predicted_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_who_is_never_drawn_has_no_staleness():
    for predict in (queued_dispatch, idle_dispatch):
        prediction = predict([1.0, 2.0, 3.0], 2, [1.0, 0.0, 1.0])
        assert prediction.share[1] == prediction.tickets[1] == 0
        assert np.isnan(prediction.staleness[1])
        assert prediction.mean_staleness == pytest.approx(1)


# ---- against the simulator -----------------------------------------------------------------------------------

CLIENTS, IN_FLIGHT, UPDATES, WARM_UP, BATCHES = 8, 4, 20_000, 2_000, 45


def experiment(sampler, compute, seed=0, **delays):
    """Eight clients, the slowest ten times as slow as the fastest."""
    slowness = np.geomspace(1.0, 10.0, CLIENTS)
    devices = tuple(Device(name=f"d{i}", share=1 / CLIENTS, slowness=s) for i, s in enumerate(slowness.tolist()))
    return af.Experiment(
        seed=seed,
        num_clients=CLIENTS,
        data=PaperRegression(num_samples=CLIENTS),
        split=InOrder(),
        strategy=AFL(
            concurrency=IN_FLIGHT,
            aggregate="delta_mean",
            sampler=sampler,
            work=Work(learning_rate=1e-6),
            schedule=ConstantRate(),
        ),
        delays=Delays(compute=compute, devices=devices, **delays),
        budget=Budget(updates=UPDATES),
        evaluation=Evaluation(every=0, distance=False),
    )


def measured(run):
    """Per batch of merges: each client's share, its mean staleness, and merges per second."""
    base, merges = {}, []
    for _, time, kind, ticket, client, version, *_ in run.journal.event_rows():
        if kind == DISPATCH:
            base[ticket] = version
        elif kind == MERGE:
            merges.append((time, client, version - 1 - base.pop(ticket)))
    time, client, staleness = (np.array(column) for column in zip(*merges, strict=True))
    edges = np.linspace(WARM_UP, UPDATES - 1, BATCHES + 1).astype(int)
    shares, late, pace = [], [], []
    for first, last in pairwise(edges):
        count = np.bincount(client[first:last], minlength=CLIENTS)
        shares.append(count / (last - first))
        late.append(np.bincount(client[first:last], weights=staleness[first:last], minlength=CLIENTS) / count)
        pace.append((last - first) / (time[last] - time[first]))
    return np.array(shares), np.array(late), np.array(pace)


def deviations(batches, expected):
    """By how many standard errors (batch means) the measured means miss what was expected."""
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    return (batches.mean(axis=0) - expected) / error


def limit(comparisons):
    """Student's two-sided limit for so many comparisons at one in a thousand altogether."""
    return stats.t.ppf(1 - 0.5e-3 / comparisons, BATCHES - 1)


def simulated_as_predicted(planned):
    prediction = predicted_participation(planned)
    shares, late, pace = measured(af.run(planned, threads=1))
    for name, batches, expected in (
        ("share", shares, prediction.share),
        ("staleness", late, prediction.staleness),
        ("throughput", pace[:, None], np.array([prediction.throughput])),
    ):
        missed = np.abs(deviations(batches, expected))
        assert missed.max() < limit(2 * CLIENTS + 1), f"{name}: {missed.round(1)} standard errors"
    # The intervals mean something only if they are narrow.
    np.testing.assert_allclose(shares.mean(axis=0), prediction.share, rtol=0.1)
    np.testing.assert_allclose(late.mean(axis=0), prediction.staleness, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [UniformAll(), UniformIdle()], ids=["queued", "idle"])
def test_the_simulator_does_what_is_predicted(sampler):
    simulated_as_predicted(experiment(sampler, Exponential(mean=1.0)))


@pytest.mark.slow
def test_the_simulator_does_what_is_predicted_with_weights_and_transfers():
    weights = (4.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.5)
    queued = Weighted(weights=weights, busy="queue")
    transfers = {"download": Constant(value=0.5), "upload": LogNormal(median=1.0, sigma=1.0)}
    simulated_as_predicted(experiment(queued, Exponential(mean=1.0), seed=1, **transfers))
    simulated_as_predicted(experiment(Weighted(weights=weights), Exponential(mean=1.0), seed=2))


@pytest.mark.slow
@pytest.mark.parametrize(
    "compute", [LogNormal(median=1.0, sigma=1.0), Constant(value=1.0)], ids=["lognormal", "constant"]
)
def test_with_idle_dispatch_only_the_means_matter(compute):
    simulated_as_predicted(experiment(UniformIdle(), compute, seed=3))


@pytest.mark.slow
def test_with_queues_durations_that_are_not_exponential_make_a_difference_and_it_is_said():
    planned = experiment(UniformAll(), Constant(value=1.0), seed=4)
    prediction = predicted_participation(planned)
    assert prediction.limits.endswith("Here: the computing times are not exponential.")
    shares, _, pace = measured(af.run(planned, threads=1))
    assert np.abs(deviations(shares, prediction.share)).max() < limit(CLIENTS)
    assert deviations(pace[:, None], prediction.throughput)[0] > 10
    assert 1.05 < pace.mean() / prediction.throughput < 1.25
