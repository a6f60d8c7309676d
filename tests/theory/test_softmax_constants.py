"""The constants of a softmax problem against what they bound, and against those of logistic regression."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.data import Clients
from asyncfed.problems import Linear, Softmax
from asyncfed.theory.constants import constants
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.softmax_constants import softmax_constants


def clients_of(classes):
    rng = np.random.default_rng(0)
    xs, ys = [rng.normal(size=(n, 3)) for n in (15, 30)], [np.arange(n) % classes for n in (15, 30)]
    return Clients.from_lists(xs, ys, labels=False)


def row_gradients(problem, x, client):
    """Of every single row of a client, by hand."""
    z, y = problem.clients.client(client)
    alone = [Clients.from_lists([[row]], [[label]], labels=False) for row, label in zip(z, y, strict=True)]
    model = problem.model
    settings = (problem.num_classes, model.l2, model.penalize_bias)
    return np.array([Softmax(one, *settings).gradient(x, 0) for one in alone])


@pytest.mark.parametrize("penalize_bias", [False, True])
def test_they_are_what_their_names_say(penalize_bias):
    problem = Softmax(clients_of(4), l2=0.1, penalize_bias=penalize_bias)
    found = softmax_constants(problem, batch_size=4)
    rng = np.random.default_rng(1)
    assert found.strong_convexity == (0.1 if penalize_bias else 0.0)
    for _ in range(20):
        x, y = rng.normal(size=(2, problem.num_params))
        for client in range(2):
            gap = problem.gradient(x, client) - problem.gradient(y, client)
            assert np.linalg.norm(gap) <= found.smoothness * np.linalg.norm(x - y)
            assert gap @ (x - y) >= found.strong_convexity * ((x - y) @ (x - y)) - 1e-12
    best = problem.optimum()
    at_best = [row_gradients(problem, best, client) for client in range(2)]
    slopes = [rows.mean(axis=0) for rows in at_best]
    np.testing.assert_allclose(found.optimum_heterogeneity, np.mean([slope @ slope for slope in slopes]))
    np.testing.assert_allclose(found.largest_optimum_gradient, max(np.linalg.norm(slope) for slope in slopes))
    np.testing.assert_allclose(found.largest_sample_gradient, np.linalg.norm(np.vstack(at_best), axis=1).max())
    shares = [(n - 4) / (4 * (n - 1)) for n in (15, 30)]
    variances = [np.sum(rows.var(axis=0)) * share for rows, share in zip(at_best, shares, strict=True)]
    np.testing.assert_allclose(found.gradient_variance_mean, np.mean(variances))
    np.testing.assert_allclose(found.gradient_variance_max, max(variances))
    assert found.uniform_gradient_variance > found.gradient_variance_max
    np.testing.assert_allclose(found.optimal_value, problem.evaluate(best)["objective"])
    assert found.not_applicable.keys() >= {"phi2", "beta2", "separable"}


def test_two_classes_have_the_constants_of_logistic_regression():
    clients = clients_of(2)
    signed = Clients(clients.x, 2 * clients.y - 1, clients.offsets, True)
    # Of m = m_2 − m_1 the slope is shared by two params, so that curvatures are twice as large.
    two = softmax_constants(Softmax(clients), batch_size=5)
    one = constants(LinearData.of_problem(Linear(signed, "logistic")), batch_size=5)
    for name in ("smoothness", "objective_smoothness", "expected_smoothness", "batch_smoothness"):
        np.testing.assert_allclose(getattr(two, name), 2 * getattr(one, name))
    np.testing.assert_allclose(two.start_gradient_variance_max, 2 * one.start_gradient_variance_max)


def test_without_an_optimum_the_reason_is_given():
    found = softmax_constants(Softmax(clients_of(3)))
    assert found.optimum is None
    assert "Set model.l2 above 0" in found.not_applicable["optimum"]
    assert found.smoothness > 0


@pytest.mark.parametrize(("aggregate", "theorems"), [("mixing", ["M"]), ("delta_mean", ["P"]), ("latest", [])])
def test_a_softmax_is_certified(aggregate, theorems):
    problem = Softmax(clients_of(3), l2=0.5)
    work = af.Work(epochs=1, batch_size=100, learning_rate=0.05)
    strategy = af.strategies.AFL(concurrency=2, aggregate=aggregate, work=work, schedule=af.ConstantRate())
    experiment = af.Experiment(num_clients=2, strategy=strategy, budget=af.Budget(rounds=40))
    certificate = af.certify(experiment, seeds=2, problem=problem)
    assert certificate.ok
    assert [guarantee.name for guarantee in certificate.applying] == theorems
    distances = certificate.runs[0].trajectory.distances
    assert (distances <= certificate.path.distance * (1 + 1e-9)).all()
    bias = certificate.client_influence.bias
    assert bias.applies == (aggregate != "latest")
    assert bias.gap >= 0
    objective = problem.objective(bias.weight)
    assert np.linalg.norm(objective.value_and_gradient(bias.optimum)[1]) < 1e-9
