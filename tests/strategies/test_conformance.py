"""Everything shipped passes the public conformance check, in all its settings."""

from itertools import product

import pytest

from asyncfed.core.types import Work
from asyncfed.strategies import (
    AFL,
    AFLGuard,
    CyclicWeightTransfer,
    FedAsync,
    FedAvg,
    FedBuff,
    FedCompass,
    PublishedScripts,
    Ringmaster,
    algorithms,
)
from asyncfed.strategies.discounts import Hinge, NoDiscount, Polynomial
from asyncfed.strategies.samplers import Fair, ShortestQueue, ShuffledCycle, UniformAll, UniformIdle, Weighted
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.testing import check_strategy

ALGORITHMS = algorithms()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_by_name(name):
    algorithm = ALGORITHMS[name]
    check_strategy(algorithm.make(3, Work(), ConstantRate()), seed=1, metrics=algorithm.metrics)


SKIP_BUSY = {
    "idle": UniformIdle(),
    "cycle": ShuffledCycle(),
    "fair": Fair(),
    "weighted": Weighted(weights=(1.0, 2.0, 3.0, 4.0, 5.0)),
}
SAMPLERS = SKIP_BUSY | {
    "all": UniformAll(),
    "queue": Weighted(weights=(1.0, 9.0), busy="queue"),
    "ahead": ShortestQueue(),
}
STALE = {
    "any": {},
    "drop": {"max_staleness": 1},
    "damp": {"max_staleness": 1, "when_stale": "damp"},
    "wait": {"max_staleness": 1, "when_stale": "wait"},
    "barrier": {"max_staleness": 0, "when_stale": "wait"},
}
AGGREGATES = ("latest", "mixing", "delta_mean", "delta_sum")


@pytest.mark.parametrize(("aggregate", "stale"), list(product(AGGREGATES, STALE)))
def test_afl(aggregate, stale):
    """Samplers and weightings take turns, so that every aggregate and every limit meets each of them."""
    samplers, first = list(SAMPLERS.values()), 3 * (AGGREGATES.index(aggregate) + list(STALE).index(stale))
    for seed in (first, first + 1):
        sampler = samplers[seed % len(samplers)]
        weighting = "samples" if seed % 2 and aggregate != "mixing" else "equal"
        strategy = AFL(concurrency=3, aggregate=aggregate, weighting=weighting, sampler=sampler, **STALE[stale])
        check_strategy(strategy, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize(("aggregate", "stale"), list(product(AGGREGATES, STALE)))
def test_afl_in_every_setting(aggregate, stale):
    weightings = ("equal",) if aggregate == "mixing" else ("equal", "samples")
    for seed, (weighting, sampler) in enumerate(product(weightings, SAMPLERS.values())):
        strategy = AFL(concurrency=3, aggregate=aggregate, weighting=weighting, sampler=sampler, **STALE[stale])
        check_strategy(strategy, seed=seed)


@pytest.mark.parametrize("stale", STALE)
@pytest.mark.parametrize("weighting", ["equal", "samples"])
def test_afl_with_everybody_at_work(weighting, stale):
    check_strategy(AFL(concurrency=4, weighting=weighting, **STALE[stale]), num_clients=4, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("weighting", ["equal", "samples"])
def test_fedavg(weighting, sampler):
    check_strategy(FedAvg(cohort_size=3, weighting=weighting, sampler=sampler))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("discount", [NoDiscount(), Polynomial(), Hinge(slope=2.0, grace=1)])
def test_fedasync(discount, sampler):
    check_strategy(FedAsync(concurrency=3, discount=discount, sampler=sampler))


@pytest.mark.parametrize(
    "strategy",
    [
        AFL(concurrency=3, sampler=Fair()),
        AFL(concurrency=3, aggregate="mixing", weighting="inverse_participation", sampler=Fair()),
        AFL(concurrency=3, aggregate="delta_mean", weighting="inverse_participation", **STALE["wait"]),
        AFL(concurrency=3, aggregate="delta_sum", weighting="inverse_participation", **STALE["damp"]),
        FedAsync(concurrency=3, weighting="inverse_participation"),
        FedAvg(cohort_size=3, sampler=Fair()),
        FedBuff(concurrency=3, sampler=Fair()),
    ],
)
def test_corrections_for_who_is_heard(strategy):
    check_strategy(strategy)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("buffer_size", [1, 4])
def test_fedbuff(buffer_size, sampler):
    check_strategy(FedBuff(concurrency=3, buffer_size=buffer_size, sampler=sampler))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighting", ["samples", "equal"])
def test_fedcompass(weighting, seed):
    check_strategy(FedCompass(min_steps=2, max_steps=10, weighting=weighting), seed=seed)
    check_strategy(FedCompass(min_steps=5, max_steps=5, latest_factor=1.0), num_clients=7, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("train_trusted", [True, False])
def test_aflguard(train_trusted, sampler):
    strategy = AFLGuard(concurrency=2, trusted_client=1, train_trusted=train_trusted, sampler=sampler)
    check_strategy(strategy, metrics=["distance", "trusted_norm"])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("stops", [True, False])
def test_ringmaster(stops, sampler):
    check_strategy(Ringmaster(concurrency=3, staleness_threshold=2, stops=stops, sampler=sampler))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_cyclic_weight_transfer(sampler):
    check_strategy(CyclicWeightTransfer(sampler=sampler))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SKIP_BUSY.values(), ids=SKIP_BUSY)
@pytest.mark.parametrize("mode", ["afl", "sync"])
def test_published_scripts(mode, sampler):
    check_strategy(PublishedScripts(mode=mode, cohort_size=3, sampler=sampler))


@pytest.mark.parametrize(
    "strategy",
    [
        AFL(concurrency=1),
        FedAvg(cohort_size=1),
        Ringmaster(concurrency=1),
        FedCompass(),
        FedBuff(concurrency=1, buffer_size=1),
        CyclicWeightTransfer(),
    ],
)
def test_a_single_client(strategy):
    check_strategy(strategy, num_clients=1)
