"""Where runs end whose clients differ in their data and in their speed, with small steps over all of a client's rows.

An algorithm that says `optimum=True` has to come to the optimum of the equally weighted mean of all clients. FedAsync
and delay-adaptive SGD provably do not: they come to the optimum in which a client counts as often as it is merged,
times what it counts then (`asyncfed.theory.bias`).
"""

from functools import cache

import numpy as np
import pytest
from tests.conformance.independent.schedule import Client
from tests.conformance.schedules import RandomDelays, World, least_squares, record

from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.strategies import NoDiscount, algorithms
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.theory.bias import effective_weights

ALGORITHMS = algorithms()
REACH = [name for name, algorithm in ALGORITHMS.items() if algorithm.optimum]
PACE = [0.7, 1.0, 2.3, 4.1]
"""Seconds for a ticket, by client: the fastest reports about six times as often as the slowest."""


@cache
def uneven_world():
    """Four clients whose optima differ, at speeds that differ; everybody can be at work."""
    rng = np.random.default_rng(4)
    clients = []
    for _ in PACE:
        a = rng.normal(size=(12, 2))
        clients.append(Client(a, a @ (2.0 * rng.normal(size=2)), 0.0))
    steepest = max(np.linalg.eigvalsh(hessian(c))[-1] for c in clients)
    work = Work(epochs=1, batch_size=12, learning_rate=float(0.02 / steepest))
    delays = RandomDelays(0, PACE, noise=0.0, loss=0.0, per_step=False)
    return World(clients, least_squares(clients), delays, (), work, tickets=4, arrivals=8000, seed=1)


def hessian(client):
    return client.a.T @ client.a / client.samples


def weighted_optimum(clients, weights):
    """Of sum_c p_c F_c."""
    return np.linalg.solve(
        sum(p * hessian(c) for p, c in zip(weights, clients, strict=True)),
        sum(p * c.a.T @ c.y / c.samples for p, c in zip(weights, clients, strict=True)),
    )


def end_of(world, strategy):
    """The mean of the models of the last half of the run: what is left of its swinging is of the size of a step."""
    recording = record(world, strategy, "zeros")
    return np.mean(recording.versions[len(recording.versions) // 2 :], axis=0), recording


def bias_of_speeds(world):
    """How far the optimum moves if clients count as often as they report."""
    shares = np.array([1 / seconds for seconds in PACE])
    return np.linalg.norm(weighted_optimum(world.clients, shares / shares.sum()) - optimum(world))


def optimum(world):
    return weighted_optimum(world.clients, [1 / len(world.clients)] * len(world.clients))


def test_the_optimum_is_the_problem_s_own():
    world = uneven_world()
    assert np.allclose(optimum(world), world.problem.optimum())
    assert bias_of_speeds(world) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("name", REACH)
def test_reaches_the_optimum_of_all_clients_whatever_their_speeds(name):
    world = uneven_world()
    tickets = 2 if ALGORITHMS[name].timing == "synchronous" else world.tickets  # cohorts of half of the clients
    end, _ = end_of(world, ALGORITHMS[name].make(tickets, world.work, ConstantRate()))
    assert np.linalg.norm(end - optimum(world)) < 0.05 * bias_of_speeds(world)


def mixing_little(strategy):
    """What is mixed in also pulls back to an older model; that cancels out only if all count the same, or little."""
    return replace(strategy, mixing=0.05, work=replace(strategy.work, learning_rate=10 * strategy.work.learning_rate))


BIASED = {
    "fedasync": lambda s: replace(s, discount=NoDiscount()),
    "fedasync, discounted": mixing_little,
    "delay_adaptive": lambda s: s,
    "delay_adaptive_mishchenko": lambda s: s,
    "async_sgd": lambda s: s,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BIASED)
def test_comes_to_the_optimum_of_who_is_merged_most(name):
    """x*_p with p_c ~ merges of c times their weight; for equal weights p_c ~ 1 / seconds, known before the run."""
    world = uneven_world()
    strategy = ALGORITHMS[name.split(",")[0]].make(world.tickets, world.work, ConstantRate())
    end, recording = end_of(world, BIASED[name](strategy))
    owners = {t: c for event in recording.events for t, c in event.sent}
    merged = [(owners[t], weight) for merge in recording.weights for t, weight in merge.items()]
    p = effective_weights(*zip(*merged, strict=True), world.num_clients)
    predicted = weighted_optimum(world.clients, p)
    bias = np.linalg.norm(predicted - optimum(world))
    assert bias > 0.8 * bias_of_speeds(world)
    assert np.linalg.norm(end - predicted) < 0.05 * bias
    if len({round(weight, 12) for _, weight in merged}) == 1:
        shares = np.array([1 / seconds for seconds in PACE])
        assert np.allclose(p, shares / shares.sum(), atol=2e-3)
