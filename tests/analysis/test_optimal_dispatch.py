"""The chances that need the least time, from an experiment's delays and from a recorded run."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.optimal_dispatch import optimal_chances, with_optimal_sampling
from asyncfed.analysis.participation import predicted_participation
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Constant, Delays, Device
from asyncfed.strategies import FedAsync, FedCompass, GeneralizedAsyncSGD
from asyncfed.theory.optimal_sampling import optimal_sampling

HALF_SLOW = Delays(compute=Constant(value=2.0), devices=(Device(name="slow", share=0.5, slowness=3.0),))
WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def test_from_the_delays_of_an_experiment(small):
    experiment = small(strategy=FedAsync(concurrency=3, work=WORK), delays=HALF_SLOW)
    planned = with_optimal_sampling(experiment)
    bound = HALF_SLOW.bind(4, 0)
    seconds = [6.0 if bound.device_of(client) == "slow" else 2.0 for client in range(4)]
    expected = optimal_sampling(seconds, 3)
    assert planned.strategy.sampler.weights == pytest.approx(expected.probabilities.tolist())
    assert (planned.strategy.concurrency, planned.strategy.work) == (3, WORK)
    assert af.from_toml(af.to_toml(planned)) == planned
    assert predicted_participation(planned).throughput == pytest.approx(expected.prediction.throughput)
    assert af.run(planned, threads=1).verdict == "finished"


def test_from_a_recorded_run(small):
    """Constant durations are recorded as they are."""
    strategy = GeneralizedAsyncSGD(concurrency=3, server_lr=0.25, work=WORK)
    experiment = small(strategy=strategy, delays=HALF_SLOW, budget=Budget(updates=60))
    recorded = af.run(experiment, threads=1)
    planned = with_optimal_sampling(experiment, recorded=recorded)
    np.testing.assert_allclose(planned.strategy.sampler.weights, optimal_chances(experiment).probabilities, rtol=1e-9)
    assert planned.strategy.server_lr == 0.25


def test_refusals(small):
    with pytest.raises(ConfigError, match="FedCompass does not say how many tickets are out at once"):
        optimal_chances(small(strategy=FedCompass()))
    short = small(strategy=FedAsync(concurrency=1, work=WORK), budget=Budget(updates=1))
    with pytest.raises(ConfigError, match=r"has no report of client \d, so its speed is unknown"):
        optimal_chances(short, recorded=af.run(short, threads=1))
