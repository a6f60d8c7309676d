"""One test per claim: identities between algorithms, and against mathematics done without this package's kernels."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.data import IID, PaperRegression
from asyncfed.delays import Constant, Delays, Exponential
from asyncfed.engine.evaluation import Evaluation
from asyncfed.kernels.losses import loss_code
from asyncfed.kernels.reference import train_one
from asyncfed.problems.linear import LinearModel
from asyncfed.store.schema import DISPATCH
from asyncfed.strategies import AFL, CyclicWeightTransfer, FedAsync, FedAvg, FedBuff, PublishedScripts
from asyncfed.strategies.discounts import NoDiscount, Polynomial
from asyncfed.strategies.samplers import ShuffledCycle
from asyncfed.strategies.schedules import ConstantRate, DelayAware

WORK = Work(epochs=2, batch_size=8, learning_rate=0.01)
STEADY = ConstantRate()
RANDOM = Delays(compute=Exponential(mean=1.0))


def experiment(strategy, *, clients=6, updates=60, delays=RANDOM, **how):
    settings = {
        "num_clients": clients,
        "data": PaperRegression(num_samples=20 * clients),
        "split": IID(),
        "strategy": strategy,
        "delays": delays,
        "budget": Budget(updates=updates),
        "evaluation": Evaluation(every=0),
        "init": "torch",
        "seed": 3,
    }
    return af.Experiment(**{**settings, **how})


def params(strategy, **how):
    return af.run(experiment(strategy, **how)).params


def same_bytes(one, other):
    return one.tobytes() == other.tobytes()


# ---- against mathematics ---------------------------------------------------------------------------------------


def design(problem, client):
    x, y = problem.clients.client(client)
    return np.column_stack([x, np.ones(len(y))]), y


def test_fedavg_of_everybody_with_one_full_batch_step_is_gradient_descent_on_the_objective():
    work = Work(epochs=1, batch_size=1000, learning_rate=0.1)
    described = experiment(FedAvg(cohort_size=6, weighting="equal", work=work), updates=6 * 30)
    problem = described.problem()
    w = problem.init(3, how="torch")
    for _ in range(30):
        slopes = [(z.T @ (z @ w - y)) / len(y) for z, y in (design(problem, c) for c in range(6))]
        w = w - 0.1 * np.mean(slopes, axis=0)
    np.testing.assert_allclose(af.run(described).params, w, rtol=1e-11)


def test_fedavg_weighted_by_samples_is_gradient_descent_on_the_pooled_rows():
    work = Work(epochs=1, batch_size=1000, learning_rate=0.1)
    described = experiment(
        FedAvg(cohort_size=6, weighting="samples", work=work), updates=6 * 30, data=PaperRegression(num_samples=100)
    )
    problem = described.problem()
    assert len(set(problem.num_examples.tolist())) > 1
    pairs = [design(problem, c) for c in range(6)]
    z, y = np.vstack([z for z, _ in pairs]), np.concatenate([y for _, y in pairs])
    w = problem.init(3, how="torch")
    for _ in range(30):
        w = w - 0.1 * (z.T @ (z @ w - y)) / len(y)
    np.testing.assert_allclose(af.run(described).params, w, rtol=1e-11)


def test_fedavg_of_a_single_client_is_plain_sgd():
    described = experiment(FedAvg(cohort_size=1, work=WORK), clients=1, updates=15)
    problem, key = described.problem(), purpose_key(3, "train")
    rows, w = problem.clients.client(0), problem.init(3, how="torch")
    for ticket in range(15):
        w = train_one(
            *rows, w, draw_key(key, 0, ticket), epochs=2, batch=8, lr=0.01, loss_code=loss_code("least_squares")
        )
    np.testing.assert_allclose(af.run(described).params, w, rtol=1e-10)


def test_a_small_enough_step_leads_every_averaging_rule_to_the_optimum():
    """Full batches and equal clients: a fixed point of each rule is the minimiser of least squares."""
    work = Work(epochs=1, batch_size=1000, learning_rate=0.05)
    rules = [
        AFL(concurrency=3, aggregate="delta_mean", work=work, schedule=STEADY),
        AFL(concurrency=3, aggregate="mixing", work=work, schedule=STEADY),
        FedAvg(cohort_size=6, weighting="equal", work=work),
        FedBuff(concurrency=3, buffer_size=2, work=work),
    ]
    exact = {"data": PaperRegression(num_samples=600, noise=0.0), "updates": 3000}
    for rule in rules:
        described = experiment(rule, **exact)
        np.testing.assert_allclose(
            af.run(described).params, described.problem().optimum(), atol=1e-6, err_msg=str(rule)
        )


def test_clients_of_the_scripts_that_never_download_train_on_alone():
    strategy = PublishedScripts(mode="sync", cohort_size=4, work=replace(WORK, start="own"))
    described = experiment(strategy, clients=4, updates=4 * 8)
    run = af.run(described)
    problem, key = described.problem(), purpose_key(3, "train")
    own = {c: problem.init(3, client=c, how="torch") for c in range(4)}
    dispatches = [event for event in run.journal.event_rows() if event.kind == DISPATCH][: 4 * 8]
    for event in dispatches:
        client = event.client
        own[client] = problem.local_train(own[client], client, WORK, draw_key(key, client, event.ticket))
    np.testing.assert_allclose(run.params, np.mean(list(own.values()), axis=0), rtol=1e-12)


# ---- between algorithms ----------------------------------------------------------------------------------------


def test_afl_with_one_at_work_and_full_mixing_is_cyclic_weight_transfer():
    cycle = ShuffledCycle()
    alone = AFL(concurrency=1, aggregate="mixing", mixing=1.0, sampler=cycle, work=WORK, schedule=STEADY)
    assert same_bytes(params(alone), params(CyclicWeightTransfer(sampler=cycle, work=WORK)))


def test_fedbuff_with_a_buffer_of_one_and_one_at_work_is_sequential_training():
    cycle = ShuffledCycle()
    alone = FedBuff(concurrency=1, buffer_size=1, server_lr=1.0, discount=NoDiscount(), sampler=cycle, work=WORK)
    np.testing.assert_allclose(params(alone), params(CyclicWeightTransfer(sampler=cycle, work=WORK)), rtol=1e-12)


def test_fedbuff_with_a_buffer_of_one_is_afl_with_deltas():
    for lr, aggregate in ((1.0, "delta_sum"), (1.0 / 4, "delta_mean")):
        buffered = FedBuff(concurrency=4, buffer_size=1, server_lr=lr, discount=NoDiscount(), work=WORK)
        assert same_bytes(params(buffered), params(AFL(concurrency=4, aggregate=aggregate, work=WORK, schedule=STEADY)))


def test_fedasync_without_a_discount_is_afl_with_mixing():
    mixed = AFL(concurrency=4, aggregate="mixing", mixing=0.3, work=WORK, schedule=STEADY)
    assert same_bytes(params(FedAsync(concurrency=4, mixing=0.3, discount=NoDiscount(), work=WORK)), params(mixed))


def test_fedasync_with_one_at_work_is_never_stale_so_its_discount_does_not_matter():
    discounted, plain = (FedAsync(concurrency=1, discount=d, work=WORK) for d in (Polynomial(power=2.0), NoDiscount()))
    assert same_bytes(params(discounted), params(plain))


def test_a_discount_matters_as_soon_as_anybody_is_stale():
    discounted, plain = (FedAsync(concurrency=4, discount=d, work=WORK) for d in (Polynomial(power=2.0), NoDiscount()))
    assert not same_bytes(params(discounted), params(plain))


def test_afl_that_waits_for_everybody_is_synchronous_fl_moment_by_moment():
    waiting = AFL(concurrency=4, aggregate="delta_mean", max_staleness=0, when_stale="wait", work=WORK, schedule=STEADY)
    one, other = (
        af.run(experiment(s, evaluation=Evaluation()))
        for s in (waiting, FedAvg(cohort_size=4, weighting="equal", work=WORK))
    )
    np.testing.assert_allclose(one.params, other.params, rtol=1e-12)
    for name in ("round", "elapsed", "longest", "energy", "bytes_up", "staleness_max", "jain_index"):
        assert one.rounds[name].tolist() == other.rounds[name].tolist()
    np.testing.assert_allclose(one.evaluations["objective"], other.evaluations["objective"], rtol=1e-12)


def test_a_bound_that_nobody_reaches_changes_nothing():
    free = AFL(concurrency=4, aggregate="mixing", work=WORK)
    for when_stale in ("drop", "damp"):
        assert same_bytes(params(free), params(replace(free, max_staleness=10_000, when_stale=when_stale)))


def test_the_mean_of_the_latest_models_of_one_client_is_that_model():
    latest = AFL(concurrency=1, aggregate="latest", work=WORK, schedule=STEADY)
    np.testing.assert_allclose(
        params(latest, clients=1), params(CyclicWeightTransfer(work=WORK), clients=1), rtol=1e-12
    )


def test_the_mean_of_the_latest_models_begins_like_synchronous_fl_of_everybody():
    """In the first round, in which all start from the first model; later ones start from models within a round."""
    latest = AFL(concurrency=6, aggregate="latest", work=WORK, schedule=STEADY)
    sync = FedAvg(cohort_size=6, weighting="equal", work=WORK)
    together = Delays(compute=Constant(value=1.0))
    np.testing.assert_allclose(
        params(latest, updates=6, delays=together), params(sync, updates=6, delays=together), rtol=1e-12
    )


def test_fedprox_without_its_term_is_fedavg_and_with_a_huge_one_stands_still():
    plain = FedAvg(cohort_size=3, work=WORK)
    assert same_bytes(params(plain), params(replace(plain, work=replace(WORK, proximal=0.0))))
    start = experiment(plain).problem().init(3, how="torch")
    held = params(replace(plain, work=replace(WORK, proximal=99.0)), updates=3)
    free = params(plain, updates=3)
    assert np.linalg.norm(held - start) < 0.8 * np.linalg.norm(free - start)


def test_a_delay_aware_rate_without_penalty_and_decay_is_constant():
    aware = DelayAware(delay_penalty=0.0, over="nothing")
    one, other = (AFL(concurrency=4, work=WORK, schedule=s) for s in (aware, STEADY))
    assert same_bytes(params(one), params(other))


def test_twice_the_loss_at_half_the_rate_is_the_same_run():
    """PyTorch's MSE has no 1/2: its gradient is twice that of least squares."""
    halves = af.run(experiment(AFL(concurrency=4, work=WORK)))
    halved = AFL(concurrency=4, work=replace(WORK, learning_rate=WORK.learning_rate / 2))
    wholes = af.run(experiment(halved, model=LinearModel(loss="mse")))
    np.testing.assert_allclose(halves.params, wholes.params, rtol=1e-12)
    np.testing.assert_allclose(2 * halves.evaluations["objective"], wholes.evaluations["objective"], rtol=1e-12)


@pytest.mark.parametrize("factor", [0.5, 4.0])
def test_a_faster_clock_changes_the_time_and_nothing_else(factor):
    """With rates that do not look at delays; powers of two, so that the order of arrivals is exactly the same."""
    strategy = FedBuff(concurrency=4, buffer_size=3, work=WORK)
    one = af.run(experiment(strategy))
    other = af.run(experiment(strategy, delays=Delays(compute=Exponential(mean=factor))))
    assert same_bytes(one.params, other.params)
    assert (factor * one.rounds["elapsed"]).tolist() == other.rounds["elapsed"].tolist()
