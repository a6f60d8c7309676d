"""Participation foretold from an experiment, and its bias read from a run."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.participation import bias_of_run, local_step, merges_of, predicted_participation
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.data import Clients, QuantitySkew
from asyncfed.delays import Availability, Constant, Delays, Device, Exponential, FunctionDelays, Pareto
from asyncfed.problems.linear import Linear, LinearModel
from asyncfed.rules import Mean
from asyncfed.strategies import AFL, CyclicWeightTransfer, FedAsync, FedAvg, FedBuff, PublishedScripts
from asyncfed.strategies.discounts import Polynomial
from asyncfed.strategies.samplers import ShuffledCycle, UniformAll, Weighted
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.uplinks import TopK

HALF_SLOW = Delays(compute=Exponential(mean=1.0), devices=(Device(name="slow", share=0.5, slowness=3.0),))
WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def slow_ones(experiment):
    bound = experiment.delays.bind(experiment.num_clients, experiment.seed)
    return [bound.device_of(client) == "slow" for client in range(experiment.num_clients)]


# ---- before a run --------------------------------------------------------------------------------------------


def test_everybody_at_work_is_foretold_by_speed(small):
    experiment = small(strategy=AFL(concurrency=4), delays=HALF_SLOW)
    prediction = predicted_participation(experiment)
    slow = np.array(slow_ones(experiment))
    np.testing.assert_allclose(prediction.share, np.where(slow, 1 / 8, 3 / 8))
    assert "Here:" not in prediction.limits


@pytest.mark.parametrize(
    ("strategy", "dispatch", "mean_staleness"),
    [
        (AFL(concurrency=3, sampler=UniformAll()), "queued", 2.0),
        (FedAsync(concurrency=3), "idle", 2.0),
        (FedBuff(concurrency=3, buffer_size=4), "idle", 0.5),
        (FedAvg(cohort_size=3), "cohort", 0.0),
        (PublishedScripts(cohort_size=2), "cohort", 0.5),
        (CyclicWeightTransfer(), "idle", 0.0),
    ],
    ids=lambda value: getattr(type(value), "__name__", ""),
)
def test_every_strategy_is_foretold_by_how_it_hands_out_tickets(small, strategy, dispatch, mean_staleness):
    prediction = predicted_participation(small(strategy=strategy, delays=HALF_SLOW))
    assert prediction.dispatch == dispatch
    assert prediction.mean_staleness == pytest.approx(mean_staleness)


def test_the_staleness_of_a_buffer_is_that_of_the_run(small):
    strategy = FedBuff(concurrency=3, buffer_size=4, work=WORK)
    experiment = small(strategy=strategy, delays=HALF_SLOW, budget=Budget(updates=4000))
    measured = af.run(experiment, threads=1).rounds["staleness_mean"]
    expected = predicted_participation(experiment).mean_staleness
    assert np.mean(measured) == pytest.approx(expected, abs=5 * np.std(measured) / np.sqrt(len(measured)))


def test_durations_that_depend_on_the_samples_are_foretold_with_them(small):
    delays = Delays(per_sample=0.1)
    experiment = small(strategy=AFL(concurrency=4), delays=delays, split=QuantitySkew(concentration=1.0))
    sizes = experiment.problem().num_examples
    assert len(set(sizes.tolist())) > 1
    np.testing.assert_allclose(predicted_participation(experiment).share, (1 / sizes) / np.sum(1 / sizes))


def test_work_with_steps_is_foretold_with_the_samples(small):
    strategy = AFL(concurrency=4, work=Work(batch_size=4, steps=6))
    experiment = small(strategy=strategy, delays=Delays(), split=QuantitySkew(concentration=1.0))
    speed = np.ceil(experiment.problem().num_examples / 4)
    assert len(set(speed.tolist())) > 1
    np.testing.assert_allclose(predicted_participation(experiment).share, speed / speed.sum())


def test_the_bytes_of_the_model_are_foretold_where_links_have_a_speed(small):
    phones = (Device(name="slow", share=0.5, bandwidth_down=8.0, bandwidth_up=4.0),)
    experiment = small(strategy=AFL(concurrency=4), delays=Delays(devices=phones))
    problem = experiment.problem()
    size = problem.num_params * 8
    rate = 1 / np.where(slow_ones(experiment), 1.0 + size / 8.0 + size / 4.0, 1.0)
    np.testing.assert_allclose(predicted_participation(experiment).share, rate / rate.sum())
    np.testing.assert_allclose(predicted_participation(experiment, problem=problem).share, rate / rate.sum())
    own = small(strategy=AFL(concurrency=4, work=Work(start="own")), delays=Delays(devices=phones))
    rate = 1 / np.where(slow_ones(own), 1.0 + size / 4.0, 1.0)
    np.testing.assert_allclose(predicted_participation(own).share, rate / rate.sum())


def test_an_upload_is_foretold_by_the_size_its_uplink_declares(small):
    work = Work(uplink=(TopK(fraction=0.2),))
    strategy, delays = FedBuff(concurrency=4, buffer_size=1, work=work), Delays(bandwidth_up=Constant(value=8.0))
    experiment = small(strategy=strategy, delays=delays)
    size = TopK(fraction=0.2).size(experiment.problem().num_params, 8)
    prediction = predicted_participation(experiment)
    assert prediction.throughput == pytest.approx(4 / (1.0 + size / 8.0))
    assert "Here:" not in prediction.limits
    ruled = predicted_participation(small(strategy=af.replace(strategy, rule=Mean()), delays=delays))
    assert "what the rule sends beside the model is left out" in ruled.limits


def test_what_is_left_out_of_account_is_said(small):
    hard = Delays(dropout=0.1, availability=Availability(period=10.0, on_fraction=0.5), download=Exponential(mean=1.0))
    strategy = AFL(concurrency=3, sampler=UniformAll(), max_staleness=2)
    limits = predicted_participation(small(delays=hard, strategy=strategy)).limits
    for part in ("not exponential", "downloads vary", "tickets are lost", "absences", "updates are dropped"):
        assert part in limits.split("Here:")[1]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"delays": Delays(compute=Pareto(minimum=1.0, shape=1.0))}, "is infinite, so there is no long run"),
        ({"strategy": AFL(concurrency=2, sampler=ShuffledCycle())}, "every share is 1/C"),
        ({"strategy": FedAvg(cohort_size=2, sampler=Weighted(weights=(1.0, 2.0)))}, "cohorts drawn by Weighted"),
        ({"strategy": AFL(concurrency=9)}, "only 4 clients"),
    ],
)
def test_what_has_no_formula_is_refused(small, how, message):
    with pytest.raises(ConfigError, match=message):
        predicted_participation(small(**how))


# ---- after a run ---------------------------------------------------------------------------------------------


@pytest.fixture
def two_opposed():
    """½(x − 1)² and ½(x + 1)², the first client three times as fast; `strategy` settings replace the usual ones."""

    def make(updates=6000, rate=0.02, **how):
        clients = Clients.from_lists([[[1.0]], [[1.0]]], [[1.0], [-1.0]], labels=False)
        problem = Linear(clients, fit_bias=False)
        settings = {"concurrency": 2, "aggregate": "delta_mean", "work": Work(learning_rate=rate)}
        strategy = AFL(**{**settings, "schedule": ConstantRate(), **how})
        experiment = af.Experiment(num_clients=2, strategy=strategy, budget=Budget(updates=updates))
        delays = FunctionDelays(lambda client, ticket, work: (1.0, 3.0)[client]).bind(2, 0)
        return SimpleNamespace(problem=problem, run=af.run(experiment, problem=problem, delays=delays, threads=1))

    return make


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", ["delta_mean", "delta_sum", "mixing"])
def test_a_run_ends_where_its_bias_says(two_opposed, aggregate):
    made = two_opposed(aggregate=aggregate)
    bias = bias_of_run(made.run)
    np.testing.assert_allclose(bias.share, [0.75, 0.25], atol=1e-3)
    assert bias.gap == pytest.approx(0.125, rel=0.01)
    assert bias.bound == pytest.approx(bias.distance)
    assert bias.applies
    assert made.run.params == pytest.approx(bias.optimum, abs=0.03)


@pytest.mark.slow
def test_the_average_of_latest_models_is_not_biased_by_speed_and_it_is_said(two_opposed):
    made = two_opposed(aggregate="latest")
    bias = bias_of_run(made.run)
    assert not bias.applies
    assert "counts the same whatever the client's speed" in bias.why
    assert made.run.params == pytest.approx([0.0], abs=0.03)
    assert bias.share[0] == pytest.approx(0.75, abs=1e-3)


def test_damping_the_slow_makes_the_bias_worse(two_opposed):
    plain = two_opposed(updates=400)
    damped = two_opposed(updates=400, max_staleness=0, when_stale="damp", damping=Polynomial(power=1.0))
    before, after = (bias_of_run(made.run) for made in (plain, damped))
    np.testing.assert_allclose(before.share, after.share)
    assert after.weight[0] > before.weight[0] + 0.05
    assert after.gap > before.gap


def test_who_trains_longer_pulls_harder():
    """Equally fast, but the second client makes three steps where the first makes one."""
    clients = Clients.from_lists([[[1.0]], [[1.0]] * 3], [[1.0], [-1.0] * 3], labels=False)
    problem = Linear(clients, fit_bias=False)
    work = Work(batch_size=1, learning_rate=0.005)
    strategy = AFL(concurrency=2, aggregate="delta_mean", work=work, schedule=ConstantRate())
    experiment = af.Experiment(num_clients=2, strategy=strategy, budget=Budget(updates=4000))
    run = af.run(experiment, problem=problem, threads=1)
    bias = bias_of_run(run)
    np.testing.assert_allclose(bias.share, [0.5, 0.5], atol=1e-3)
    np.testing.assert_allclose(bias.weight, [0.25, 0.75], atol=1e-3)
    assert run.params == pytest.approx(bias.optimum, abs=0.02)


def test_merges_are_read_with_their_clients_weights_and_steps(small):
    strategy = FedAvg(cohort_size=2, work=WORK)
    run = af.run(small(strategy=strategy, budget=Budget(rounds=5), split=QuantitySkew(concentration=1.0)), threads=1)
    sizes = run.experiment.problem().num_examples
    merges = merges_of(run, sizes)
    np.testing.assert_array_equal(np.bincount(merges.clients, minlength=4), run.participation())
    np.testing.assert_allclose(merges.weights.reshape(5, 2).sum(axis=1), 1.0)
    np.testing.assert_allclose(merges.steps, 0.01 * np.ceil(sizes[merges.clients] / 4))


def test_lost_and_dropped_tickets_are_no_merges(small):
    strategy = AFL(concurrency=4, aggregate="delta_mean", max_staleness=3, work=WORK)
    delays = Delays(compute=Exponential(mean=1.0), dropout=0.3)
    run = af.run(small(strategy=strategy, delays=delays, budget=Budget(updates=60)), threads=1)
    assert run.rounds["lost"][-1] > 0
    assert run.rounds["dropped"][-1] > 0
    bias = bias_of_run(run)
    np.testing.assert_allclose(bias.share, run.participation() / 60)


def test_the_length_of_local_training_follows_epochs_batches_and_decay():
    work = Work(epochs=3, batch_size=4, learning_rate=0.5, decay=1.0)
    assert local_step(work, 9) == pytest.approx(3 * 0.5 * (1 + 1 / 2 + 1 / 3))


def test_a_loss_without_a_single_minimiser_is_refused(small):
    labels = af.data.PaperClassification(num_samples=32)
    run = af.run(small(data=labels, model=LinearModel(loss="hinge"), strategy=AFL(concurrency=2, work=WORK)), threads=1)
    with pytest.raises(ConfigError, match='"hinge" with l2 = 0 has no single minimiser'):
        bias_of_run(run)


def test_clients_that_never_download_follow_no_common_objective(small):
    run = af.run(small(strategy=PublishedScripts(cohort_size=2, work=WORK)), threads=1)
    bias = bias_of_run(run)
    assert not bias.applies
    assert "never download" in bias.why


def test_a_constant_upload_does_not_occupy_the_client(small):
    """With queues, transfers overlap; without, they keep the ticket's client from being drawn."""
    delays = Delays(upload=Constant(value=5.0))
    queued = predicted_participation(small(delays=delays, strategy=AFL(concurrency=4, sampler=UniformAll())))
    idle = predicted_participation(small(delays=delays, strategy=AFL(concurrency=4)))
    assert queued.utilisation.max() < 0.25
    assert idle.utilisation.min() == pytest.approx(1)
