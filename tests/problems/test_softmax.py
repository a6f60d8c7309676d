"""The softmax problem: its conformance, its optimum, its likeness to logistic regression, its TOML, its shard."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.types import Work
from asyncfed.data import Clients
from asyncfed.problems import Linear, Softmax, SoftmaxModel
from asyncfed.problems.softmax_objective import SoftmaxObjective
from asyncfed.testing import check_problem


def clients_of(sizes=(12, 30), d=3, classes=4, seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    xs = [rng.normal(size=(size, d)) for size in sizes]
    ys = [np.concatenate([np.arange(classes), rng.integers(0, classes, size - classes)]) for size in sizes]
    return Clients.from_lists(xs, ys, labels=False, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fit_bias", [False, True])
def test_it_is_a_problem(dtype, fit_bias):
    check_problem(Softmax(clients_of(dtype=dtype), l2=0.1, penalize_bias=False, fit_bias=fit_bias))


@pytest.mark.parametrize("penalize_bias", [False, True])
def test_the_optimum_has_no_gradient_and_is_scikit_learns(penalize_bias):
    clients = clients_of(sizes=(20, 20))
    problem = Softmax(clients, l2=0.05, penalize_bias=penalize_bias)
    best = problem.optimum()
    pooled = np.mean([problem.gradient(best, client) for client in range(2)], axis=0)
    assert np.abs(pooled).max() < 1e-12
    own = problem.client_optimum(1)
    assert np.abs(problem.gradient(own, 1)).max() < 1e-12
    if penalize_bias:
        return
    assert abs(best.reshape(4, 4)[:, 3].sum()) < 1e-9
    linear_model = pytest.importorskip("sklearn.linear_model")
    other = linear_model.LogisticRegression(C=1 / (0.05 * 40), tol=1e-10, max_iter=1000).fit(clients.x, clients.y)
    np.testing.assert_allclose(best.reshape(4, 4)[:, :3], other.coef_, atol=1e-5)
    np.testing.assert_allclose(problem.evaluate(best)["pooled_accuracy"], other.score(clients.x, clients.y))


def test_two_classes_are_logistic_regression():
    clients = clients_of(classes=2)
    signed = Clients(clients.x, 2 * clients.y - 1, clients.offsets, True)
    two, one = Softmax(clients, l2=0.2, penalize_bias=False), Linear(signed, "logistic", l2=0.1, penalize_bias=False)
    pair = two.optimum().reshape(2, -1)
    np.testing.assert_allclose(pair[1] - pair[0], one.optimum(), atol=1e-9)
    np.testing.assert_allclose(two.evaluate(pair.ravel())["objective"], one.evaluate(one.optimum())["objective"])
    assert two.evaluate(pair.ravel())["accuracy"] == one.evaluate(one.optimum())["accuracy"]
    # A step of a softmax from w_1 = −w_2 is one of logistic regression at twice the rate, for what w_2 − w_1 is.
    w = np.array([0.3, -0.2, 0.5, 0.1])
    free = Softmax(clients).local_train(np.concatenate([-w / 2, w / 2]), 0, Work(batch_size=5, learning_rate=0.1), 7)
    same = Linear(signed, "logistic").local_train(w, 0, Work(batch_size=5, learning_rate=0.2), 7)
    np.testing.assert_allclose(free[4:] - free[:4], same, atol=1e-12)


def test_the_hessian_is_the_slope_of_the_gradient():
    clients = clients_of()
    weights = np.array([0.3, 0.7])
    objective = SoftmaxObjective(clients.x, clients.y, clients.offsets, 4, np.full(16, 0.1), weights)
    rng = np.random.default_rng(3)
    point, direction = rng.normal(size=(2, 16))
    ahead, behind = (objective.value_and_gradient(point + sign * 1e-6 * direction)[1] for sign in (1, -1))
    product = objective.hessian(point) @ direction
    np.testing.assert_allclose((ahead - behind) / 2e-6, product, atol=1e-7)
    np.testing.assert_allclose(objective.hessian_product(point)(direction), product, atol=1e-12)


def test_there_is_no_optimum_without_a_penalty_or_a_class():
    clients = clients_of()
    assert Softmax(clients).optimum() is None
    assert Softmax(clients, num_classes=5, l2=0.1, penalize_bias=False).optimum() is None
    assert Softmax(clients, num_classes=5, l2=0.1).optimum() is not None


def test_it_runs_from_toml_and_a_shard_trains_as_the_whole():
    experiment = af.from_toml('[model]\nkind = "softmax"\nl2 = 0.01\n[budget]\nrounds = 5\n')
    assert experiment.model == SoftmaxModel(l2=0.01)
    assert af.from_toml(af.to_toml(experiment)) == experiment
    problem = Softmax(clients_of(), l2=0.01)
    run = af.run(af.replace(experiment, strategy=af.strategies.FedAvg(cohort_size=2)), problem=problem)
    assert run.evaluations["objective"][-1] < run.evaluations["objective"][0]
    shard = pickle.loads(pickle.dumps(problem.shard(1)))
    start, work = np.full(problem.num_params, 0.1), Work(epochs=2, batch_size=7, learning_rate=0.1)
    assert np.array_equal(shard.train(start, work, 5), problem.local_train(start, 1, work, 5))
    assert pickle.loads(pickle.dumps(problem)).fingerprint() == problem.fingerprint()


def test_held_out_rows_are_measured():
    problem = Softmax(clients_of(), l2=0.1, held_out={"test": clients_of(seed=1)})
    best = problem.optimum()
    measured = problem.evaluate(best)
    assert {"test_loss", "test_accuracy", "accuracy", "pooled_accuracy"} <= measured.keys()
    scores = problem.client_scores(np.array([best, best]), "test")
    np.testing.assert_allclose(scores.loss.mean(), measured["test_loss"])
    assert problem.parts == ("training", "test")
    for models in (best, np.array([best, best])):
        loss, offsets = problem.row_losses(models, "test")
        np.testing.assert_allclose([loss[a:b].mean() for a, b in pairwise(offsets)], scores.loss)


def test_settings_and_targets_are_checked():
    with pytest.raises(ConfigError, match="l2 is -1"):
        SoftmaxModel(l2=-1)
    with pytest.raises(DataError, match="one class, 0"):
        Softmax(Clients.from_lists([[[1.0]]], [[0.0]], labels=False))
    with pytest.raises(DataError, match="y holds 3"):
        Softmax(clients_of(), num_classes=3)
    with pytest.raises(DataError, match="y holds 3"):
        Softmax(clients_of(classes=3), num_classes=3, held_out={"test": clients_of()})
