"""Chances of being drawn: the closed network they make, the slopes, the optimum, and what a simulation says of it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.data import InOrder, PaperRegression
from asyncfed.delays import Delays, Device, Exponential
from asyncfed.engine.evaluation import Evaluation
from asyncfed.store.schema import DISPATCH, MERGE
from asyncfed.strategies import GeneralizedAsyncSGD
from asyncfed.strategies.samplers import Weighted
from asyncfed.theory.optimal_sampling import _Network, optimal_sampling, sampling_plan

TWO_SPEEDS = [1.0] * 5 + [10.0] * 5


def test_the_known_network():
    prediction = sampling_plan([1.0, 1 / 2, 1 / 5], 4, [0.2, 0.3, 0.5]).prediction
    assert prediction.staleness.round(3).tolist() == [7.509, 3.193, 1.081]
    assert round(prediction.throughput, 3) == 4.219
    assert prediction.share @ prediction.staleness == pytest.approx(3.0, rel=1e-12)


def test_what_is_needed_is_made_of_throughput_noise_and_staleness():
    """The mean-value analysis of the search agrees with `queued_dispatch`, transfers included."""
    service, transfer, chances = np.array([0.4, 1.0, 2.5]), np.array([0.3, 0.0, 2.0]), np.array([0.5, 0.3, 0.2])
    plan = sampling_plan(service, 5, chances, transfer, noise_ratio=7.0)
    noise, waiting = np.sum(1 / chances) / 9, np.sum(plan.prediction.staleness / chances) / 9
    assert plan.updates == pytest.approx(1 + 7 * noise + np.sqrt(7 * 4 * waiting), rel=1e-12)
    assert plan.seconds == pytest.approx(plan.updates / plan.prediction.throughput, rel=1e-12)


@pytest.mark.parametrize("transfer", [0.0, np.array([0.2, 0.0, 3.0, 1.0])])
@pytest.mark.parametrize("tickets", [1, 2, 6])
def test_slopes_are_those_of_differences(tickets, transfer):
    network = _Network([0.3, 1.0, 1.7, 4.0], tickets, transfer, 20.0)
    at, width = np.array([-0.5, 0.3, -1.2, -2.0]), 1e-6
    _, _, slopes = network.cost(at)
    for client in range(4):
        step = width * np.eye(4)[client]
        above, below = network.cost(at + step), network.cost(at - step)
        for which in (0, 1):
            difference = (np.log(above[which]) - np.log(below[which])) / (2 * width)
            assert slopes[which][client] == pytest.approx(difference, abs=1e-7)


@given(st.integers(1, 12), st.integers(1, 15), st.floats(0.01, 100.0), st.floats(0.1, 1e4))
@settings(max_examples=10)
def test_equal_speeds_are_drawn_equally(clients, tickets, seconds, ratio):
    plan = optimal_sampling([seconds] * clients, tickets, noise_ratio=ratio)
    assert plan.probabilities.tolist() == [1 / clients] * clients


def test_one_ticket_without_staleness_has_a_formula():
    """With one ticket and noise alone, (Σ 1/p)(Σ p s) is least for p ∝ 1/sqrt(s)."""
    service = np.array([0.5, 1.0, 4.0, 9.0])
    plan = optimal_sampling(service, 1, noise_ratio=1e9)
    expected = service**-0.5 / np.sum(service**-0.5)
    np.testing.assert_allclose(plan.probabilities, expected, rtol=1e-5)
    assert plan.prediction.staleness.tolist() == pytest.approx([0.0] * 4, abs=1e-12)


def test_no_neighbour_is_better_and_the_same_is_found_again():
    service = np.geomspace(0.5, 20.0, 7)
    plan, again = optimal_sampling(service, 6), optimal_sampling(service, 6)
    assert plan.probabilities.tobytes() == again.probabilities.tobytes()
    rng = np.random.default_rng(0)
    for _ in range(30):
        other = plan.probabilities * np.exp(0.05 * rng.normal(size=7))
        assert sampling_plan(service, 6, other / other.sum()).seconds >= plan.seconds * (1 - 1e-12)
    assert np.all(np.diff(plan.probabilities) < 0)  # the slower, the rarer


@pytest.mark.parametrize("tickets", [2, 5, 20])
@pytest.mark.parametrize("ratio", [1.0, 100.0, 1e4])
def test_fewest_updates_make_the_system_slow(tickets, ratio):
    equal = sampling_plan(TWO_SPEEDS, tickets, noise_ratio=ratio)
    fastest = optimal_sampling(TWO_SPEEDS, tickets, noise_ratio=ratio)
    fewest = optimal_sampling(TWO_SPEEDS, tickets, noise_ratio=ratio, per="update")
    assert fewest.updates < equal.updates < fastest.updates
    assert fastest.seconds < equal.seconds < fewest.seconds
    assert fewest.prediction.throughput < equal.prediction.throughput < fastest.prediction.throughput


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optimal_sampling([1.0, 2.0], 2, noise_ratio=0.0), "noise_ratio is 0.0; it must be a positive number"),
        (lambda: optimal_sampling([1.0, np.inf], 2), "no long run to predict"),
        (lambda: optimal_sampling([1.0], 0), "0 tickets in flight"),
        (lambda: sampling_plan([1.0, 2.0], 2, [1.0, 0.0]), r"probabilities\[1\] is 0.0; who is never drawn"),
        (lambda: sampling_plan([1.0, 2.0], 2, [1.0]), r"routing has shape \(1,\), but there are 2"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


# ---- against the simulator -----------------------------------------------------------------------------------------


def experiment(service, chances, tickets, updates, **how):
    clients = len(service)
    devices = tuple(Device(name=f"d{i}", share=1 / clients, slowness=s) for i, s in enumerate(service))
    strategy = GeneralizedAsyncSGD(
        concurrency=tickets,
        sampler=Weighted(weights=tuple(chances), busy="queue"),
        work=Work(epochs=1, batch_size=1000, learning_rate=how.pop("rate", 1e-6)),
    )
    settings = {
        "seed": 0,
        "num_clients": clients,
        "data": PaperRegression(num_samples=clients * how.pop("rows", 1)),
        "split": InOrder(),
        "strategy": strategy,
        "delays": Delays(compute=Exponential(mean=1.0), devices=devices),
        "budget": Budget(updates=updates),
        "evaluation": Evaluation(every=0, distance=False),
    }
    return af.Experiment(**{**settings, **how})


def means_of(planned):
    """The mean seconds of each client: which device it has depends on the seed."""
    return planned.delays.expected_durations(planned.num_clients, planned.seed, planned.strategy.work, None).compute


@pytest.mark.slow
def test_completions_throughput_and_staleness_are_as_predicted():
    chances, tickets, updates, warm_up, batches = (0.2, 0.3, 0.5), 4, 20_000, 2_000, 40
    planned = experiment([5.0, 2.5, 1.0], chances, tickets, updates)
    prediction = sampling_plan(means_of(planned), tickets, chances).prediction
    base, merges = {}, []
    for _, time, kind, ticket, client, version, *_ in af.run(planned, threads=1).journal.event_rows():
        if kind == DISPATCH:
            base[ticket] = version
        elif kind == MERGE:
            merges.append((time, client, version - 1 - base.pop(ticket)))
    time, client, stale = (np.array(column) for column in zip(*merges, strict=True))
    edges = np.linspace(warm_up, updates - 1, batches + 1).astype(int)
    found = []
    for first, last in pairwise(edges):
        count = np.bincount(client[first:last], minlength=3)
        late = np.bincount(client[first:last], weights=stale[first:last], minlength=3) / count
        found.append([*(count / (last - first)), *late, (last - first) / (time[last] - time[first])])
    found, expected = np.array(found), [*chances, *prediction.staleness, prediction.throughput]
    error = found.std(axis=0, ddof=1) / np.sqrt(batches)
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4 * error), (found.mean(axis=0), expected, error)
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=0.05)  # the intervals are narrow


@pytest.mark.slow
def test_the_best_chances_are_faster_in_a_simulation_too():
    """Virtual time to the same error, each with the step that makes the noise of its merges the same."""
    clients, tickets, seeds = 10, 5, range(4)
    seconds = {}
    for name in ("equal", "fastest", "fewest"):
        times = []
        for seed in seeds:
            planned = experiment(TWO_SPEEDS, [0.1] * clients, tickets, 2000, seed=seed, rows=20, rate=0.002)
            service = means_of(planned)
            plan = {
                "equal": lambda s=service: sampling_plan(s, tickets),
                "fastest": lambda s=service: optimal_sampling(s, tickets),
                "fewest": lambda s=service: optimal_sampling(s, tickets, noise_ratio=1.0, per="update"),
            }[name]()
            noise = np.sum(1 / plan.probabilities) / clients**2
            strategy = af.replace(
                planned.strategy,
                server_lr=float(1.0 / noise),
                sampler=Weighted(weights=tuple(plan.probabilities.tolist()), busy="queue"),
            )
            run = af.run(
                af.replace(planned, strategy=strategy, evaluation=Evaluation(every=20, distance=True)), threads=1
            )
            distance, clock = np.array(run.evaluations["distance"]), np.array(run.evaluations["elapsed"])
            assert (distance < 0.1 * distance[0]).any()
            times.append(clock[np.argmax(distance < 0.1 * distance[0])])
        seconds[name] = np.array(times)
    for better, worse in (("fastest", "equal"), ("equal", "fewest")):
        saved = seconds[worse] - seconds[better]
        assert saved.mean() > 2 * saved.std(ddof=1) / np.sqrt(len(seeds)), seconds
