"""FedAdam, FedYogi, FedAdagrad and FedAvgM by name: two rounds by hand, FedAvg as a limit, and rates that are sound."""

from math import sqrt

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.rules import Adagrad, Adam, Momentum, Optimised, Yogi
from asyncfed.strategies import FedAvg, algorithms
from asyncfed.strategies.schedules import ConstantRate

NAMES = ("fedadam", "fedyogi", "fedadagrad", "fedavgm")


def named(name, tickets=3, work=Work()):
    return algorithms()[name].make(tickets, work, ConstantRate())


def two_rounds(hand_run, name):
    """Mean changes of 2 and then -1, of clients with 1, 2 and 1 samples; the model after each."""
    run, models = hand_run(named(name), num_examples=(1, 2, 1)), []
    for changes in ((4.0, 1.0, 2.0), (-2.0, -1.0, 0.0)):
        start = run.x
        for client, change in enumerate(changes):
            run.arrive(client, start + change)
        models.append(run.x)
    return models


def test_fedadams_rounds(hand_run):
    """Weights 1/4, 1/2, 1/4: D = 2, then -1. m = 0.2, then 0.08; v from 1e-6, without a correction of its bias."""
    v1 = 0.99e-6 + 0.04
    v2 = 0.99 * v1 + 0.01
    first = 0.03 * 0.2 / (sqrt(v1) + 1e-3)
    assert two_rounds(hand_run, "fedadam") == pytest.approx([first, first + 0.03 * 0.08 / (sqrt(v2) + 1e-3)], rel=1e-9)


def test_fedyogis_rounds(hand_run):
    """v rises by (1 - b2) D^2 both times, as it is below D^2."""
    v1, v2 = 1e-6 + 0.04, 1e-6 + 0.05
    first = 0.03 * 0.2 / (sqrt(v1) + 1e-3)
    assert two_rounds(hand_run, "fedyogi") == pytest.approx([first, first + 0.03 * 0.08 / (sqrt(v2) + 1e-3)], rel=1e-9)


def test_fedadagrads_rounds(hand_run):
    first = 0.3 * 2.0 / (sqrt(4.000001) + 1e-3)
    second = first - 0.3 / (sqrt(5.000001) + 1e-3)
    assert two_rounds(hand_run, "fedadagrad") == pytest.approx([first, second], rel=1e-9)


def test_fedavgms_rounds(hand_run):
    assert two_rounds(hand_run, "fedavgm") == pytest.approx([0.2, 0.2 + 0.1 * (0.9 * 2.0 - 1.0)], rel=1e-9)


@pytest.mark.parametrize(
    "optimiser",
    [Adam(lr=1e12, eps=1e12, b1=0.0, v0=0.0), Yogi(lr=1e12, eps=1e12, b1=0.0, v0=0.0), Momentum(b=0.0)],
    ids=lambda optimiser: type(optimiser).__name__,
)
def test_limits_in_which_they_are_fedavg(hand_run, optimiser):
    plain, optimised = FedAvg(cohort_size=3), FedAvg(cohort_size=3, rule=Optimised(optimiser=optimiser))
    models = []
    for strategy in (plain, optimised):
        run = hand_run(strategy, num_examples=(1, 2, 1))
        for client, model in enumerate((4.0, 1.0, 2.0)):
            run.arrive(client, model)
        models.append(run.x)
    assert models[1] == pytest.approx(models[0], rel=1e-9)


def test_each_name_is_fedavg_with_its_optimiser():
    for name, optimiser in zip(NAMES, (Adam(lr=0.03), Yogi(lr=0.03), Adagrad(lr=0.3), Momentum(lr=0.1)), strict=True):
        expected = FedAvg(cohort_size=3, rule=Optimised(optimiser=optimiser))
        assert named(name) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epochs", [1, 100])
def test_the_rates_by_default_neither_diverge_nor_swing(name, epochs):
    """One local step, or a client's own optimum: the objective ends far below its start, and stays there."""
    work = Work(epochs=epochs, batch_size=10**6, learning_rate=0.05)
    experiment = af.Experiment(
        num_clients=6,
        data=af.data.PaperRegression(num_samples=120),
        strategy=named(name, 6, work),
        budget=af.Budget(rounds=300),
    )
    losses = af.run(experiment).evaluations["objective"]
    best = af.run(replace(experiment, strategy=FedAvg(cohort_size=6, work=work))).evaluations["objective"].min()
    assert losses[-50:].max() - best < 0.05 * (losses[0] - best)
    assert np.isfinite(losses).all()
