"""A stage is a problem like any other, and its coordinates make the curvature the identity."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.kernels.losses import LEAST_SQUARES, LOGISTIC, SQUARED_HINGE
from asyncfed.problems.protocol import Jobs
from asyncfed.sklearn.coordinates import CurvatureCoordinates, ScaledCoordinates
from asyncfed.sklearn.margin_losses import SeparateLosses, SoftmaxLoss
from asyncfed.sklearn.site_rows import pack_sites
from asyncfed.sklearn.stage_problem import SiteObjective, StageProblem
from asyncfed.testing import check_problem

LOSSES = {
    "least_squares": SeparateLosses(LEAST_SQUARES),
    "logistic": SeparateLosses(LOGISTIC),
    "two_hinges": SeparateLosses(SQUARED_HINGE, 2),
    "softmax": SoftmaxLoss(3),
}


def objective_of(name, weighting="rows"):
    rng = np.random.default_rng(0)
    loss, x = LOSSES[name], rng.normal(size=(40, 3)) * [1.0, 5.0, 0.1] + 2.0
    y = {"least_squares": rng.normal(size=(40, 1)), "softmax": rng.integers(0, 3, 40)}.get(name)
    if y is None:
        y = rng.choice([-1.0, 1.0], (40, loss.outputs))
    groups = np.repeat([0, 1, 2], [7, 13, 20])
    rows = pack_sites(x, y, groups, num_clients=1, weighting=weighting, fit_intercept=True, centred=True)
    return SiteObjective(rows, loss, np.tile(rows.penalties(0.1, True), loss.outputs))


def mean_curvature(objective, w, highest):
    return np.mean(list(objective.client_curvatures(w, highest)), axis=0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scaled", [False, True])
def test_a_stage_is_a_problem(name, scaled):
    objective = objective_of(name, "clients" if scaled else "rows")
    base = np.random.default_rng(1).normal(size=len(objective.penalty))
    curvature = mean_curvature(objective, base, 0.5)
    diagonal = np.einsum("bii->bi", curvature).ravel()
    coordinates = ScaledCoordinates(diagonal) if scaled else CurvatureCoordinates(curvature)
    problem = StageProblem(objective, coordinates, base)
    check_problem(problem)
    v = np.full(problem.num_params, 0.1)
    pooled = np.mean([problem.gradient(v, client) for client in range(3)], axis=0)
    measured = problem.evaluate(v)
    length = coordinates.length(problem.model_at(v))
    np.testing.assert_allclose(measured["gradient_norm"], np.linalg.norm(pooled) / length)
    jobs = Jobs(v[None], [1], [Work(batch_size=5, learning_rate=0.1)], [3])
    steps, sums, squares = problem.local_path_moments(jobs)
    assert steps.tolist() == [3.0]
    assert squares[0] > 0
    assert sums.shape == (1, problem.num_params)
    with pytest.raises(ConfigError, match="momentum"):
        problem.local_train(v, 0, Work(momentum=0.5), 0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("highest", [0.0, 1.0])
def test_coordinates_make_the_curvature_the_identity_and_the_largest_is_never_exceeded(name, highest):
    objective = objective_of(name)
    w = np.random.default_rng(2).normal(size=len(objective.penalty))
    curvature = mean_curvature(objective, w, highest)
    coordinates = CurvatureCoordinates(curvature)
    np.testing.assert_allclose(coordinates.largest(curvature), 1.0)
    direction = np.random.default_rng(3).normal(size=len(w))
    np.testing.assert_allclose(coordinates.length(coordinates.to_params(direction)), np.linalg.norm(direction))
    there, highest_there = mean_curvature(objective, w, 0.0), mean_curvature(objective, w, 1.0)
    assert np.linalg.eigvalsh(highest_there - there).min() > -1e-12
    step = 1e-6 * direction
    slope = (objective.pooled(w + step)[1] - objective.pooled(w - step)[1]) / 2e-6
    if name != "two_hinges":
        blocks = (there @ direction.reshape(len(there), -1, 1)).ravel()
        np.testing.assert_allclose(slope, blocks, atol=1e-6)


def test_models_are_given_back_for_features_as_they_were():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 2)) * [3.0, 0.01] + [5.0, 1.0], rng.normal(size=(12, 1))
    rows = pack_sites(x, y, None, num_clients=4, weighting="rows", fit_intercept=True, centred=True)
    model = rng.normal(size=(1, 3))
    coefficients, intercepts = rows.raw_model(model)
    order = np.argsort(np.arange(12) % 4, kind="stable")
    np.testing.assert_allclose(x[order] @ coefficients.T + intercepts, rows.z @ model.T)
    np.testing.assert_allclose(rows.penalties(2.0, False)[:2] * model[0, :2] ** 2, 2.0 * coefficients[0] ** 2)
