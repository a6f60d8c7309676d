"""The measured client drift against brute force: every local iterate, one by one."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import Config
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.engine.evaluation import Evaluation
from asyncfed.kernels.losses import loss_code
from asyncfed.kernels.reference import train_path
from asyncfed.rules.protocol import Rule
from asyncfed.strategies import AFL, FedAvg, FedBuff
from asyncfed.strategies.schedules import ConstantRate

WORK = Work(epochs=3, batch_size=4, learning_rate=0.01, decay=0.5)
DELAYS = Delays(compute=Exponential(mean=1.0))


def brute_force(experiment, merges):
    """The sum over local steps of |y_i - x|^2, one number per merged update."""
    problem, key = experiment.problem(), purpose_key(experiment.seed, "train")
    how = {"epochs": 3, "batch": 4, "lr": 0.01, "decay": 0.5, "loss_code": loss_code("least_squares")}
    drifts = []
    for ticket, client, start, x in merges:
        rows = problem.clients.client(client)
        path = train_path(*rows, start, draw_key(key, client, ticket), **how)
        drifts.append(sum(float(((y - x) ** 2).sum()) for y in path[:-1]))
    return np.array(drifts)


def test_drift_of_stale_updates(tiny, events, naive_afl):
    strategy = AFL(concurrency=4, aggregate="delta_mean", work=WORK, schedule=ConstantRate())
    experiment = tiny(
        clients=4, strategy=strategy, delays=DELAYS, budget=Budget(rounds=5), evaluation=Evaluation(drift=True)
    )
    run = af.run(experiment)
    first = [e.client for e in events(run, "dispatch")[:4]]
    _, merges = naive_afl(experiment.problem(), DELAYS.bind(4, 0), first, WORK, 0, 20)
    expected = brute_force(experiment, [m[:4] for m in merges]).reshape(5, 4).sum(axis=1)
    assert np.isnan(run.evaluations["client_drift"][0])
    np.testing.assert_allclose(run.evaluations["client_drift"][1:], expected, rtol=1e-9)


@pytest.mark.parametrize("every", [1, 2])
def test_drift_of_a_barrier_adds_up_between_evaluations(tiny, events, every):
    strategy = FedAvg(cohort_size=2, weighting="equal", work=WORK)
    experiment = tiny(
        strategy=strategy, budget=Budget(rounds=4), evaluation=Evaluation(every=every, drift=True), delays=DELAYS
    )
    run = af.run(experiment)
    problem, key = experiment.problem(), purpose_key(0, "train")
    x, per_round = problem.init(0), []
    handed_out = events(run, "dispatch")
    for n in range(4):
        cohort = [(e.ticket, e.client) for e in handed_out[2 * n : 2 * n + 2]]
        per_round.append(brute_force(experiment, [(t, c, x, x) for t, c in cohort]).sum())
        x = sum(problem.local_train(x, c, WORK, draw_key(key, c, t)) for t, c in cohort) / 2
    expected = np.array(per_round).reshape(-1, every).sum(axis=1)
    np.testing.assert_allclose(run.evaluations["client_drift"][1:], expected, rtol=1e-9)


class Shifted(Rule, Config, tag_field="kind", tag="shifted_for_test_of_drift"):
    """Adds the deltas up; every client gets a correction of its own."""

    def send(self, memory, client):
        return {"correction": np.full(11, 0.1 * (client + 1))}

    def step(self, memory, params, arrivals, merge, key):
        return params + sum(arrival.weight * arrival.change for arrival in arrivals), memory, {}


def test_drift_of_work_with_steps_and_corrections(tiny, events):
    work = Work(steps=7, batch_size=4, learning_rate=0.01, decay=0.5)
    strategy = FedBuff(concurrency=1, buffer_size=1, work=work, rule=Shifted())
    experiment = tiny(strategy=strategy, budget=Budget(rounds=3), evaluation=Evaluation(drift=True), delays=DELAYS)
    run = af.run(experiment)
    problem, key = experiment.problem(), purpose_key(0, "train")
    how = {"steps": 7, "batch": 4, "lr": 0.01, "decay": 0.5, "loss_code": loss_code("least_squares")}
    x, drifts = problem.init(0), []
    for event in events(run, "dispatch")[:3]:
        rows, own = problem.clients.client(event.client), draw_key(key, event.client, event.ticket)
        path = train_path(*rows, x, own, correction=Shifted().send({}, event.client)["correction"], **how)
        drifts.append(sum(float(((y - x) ** 2).sum()) for y in path[:-1]))
        x = path[-1]
    np.testing.assert_allclose(run.params, x, rtol=1e-9)
    np.testing.assert_allclose(run.evaluations["client_drift"][1:], drifts, rtol=1e-9)
