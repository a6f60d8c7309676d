"""The minimiser of the mean over clients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import lstsq
from scipy.optimize import minimize

from asyncfed.core.errors import DataError
from asyncfed.kernels.losses import loss_code
from asyncfed.problems import objective as chunked
from asyncfed.problems.linear import Linear
from asyncfed.problems.newton import newton_minimum
from asyncfed.problems.objective import Objective


class Packed:
    def __init__(self, x, y, offsets):
        self.x, self.y, self.offsets = np.asarray(x), np.asarray(y), np.asarray(offsets, dtype=np.int64)

    def sha256(self):
        raise AssertionError("an optimum needs no fingerprint")


def random_clients(seed, sizes=(30, 5, 80), d=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(sizes), d))
    y = np.sign(x @ rng.normal(size=d) + rng.normal(size=len(x)))
    return Packed(x.astype(dtype), y.astype(dtype), np.cumsum([0, *sizes]))


def mean_gradient(problem, params):
    return np.mean([problem.gradient(params, c) for c in range(problem.num_clients)], axis=0)


@pytest.mark.parametrize("loss", ["least_squares", "mse"])
def test_two_clients_of_three_points(loss):
    data = Packed([[1.0], [2.0], [3.0], [-1.0], [0.0], [2.0]], [1.0, 2.0, 2.0, 0.0, 1.0, 4.0], [0, 3, 6])
    assert Linear(data, loss).optimum() == pytest.approx([0.676923, 0.876923], abs=5e-7)


def test_clients_count_alike_whatever_their_size():
    # Client 0 wants b = 0 with three rows, client 1 wants b = 1 with one: the mean over clients is ½, pooled it is ¼.
    data = Packed(np.zeros((4, 1)), [0.0, 0.0, 0.0, 1.0], [0, 3, 4])
    assert Linear(data).optimum() == pytest.approx([0.0, 0.5], abs=1e-15)


@pytest.mark.parametrize("loss", ["least_squares", "mse", "logistic", "squared_hinge"])
@pytest.mark.parametrize("penalize_bias", [True, False])
@given(seed=st.integers(0, 10_000), l2=st.sampled_from([1e-3, 0.1, 5.0]), fit_bias=st.booleans())
@settings(max_examples=10, deadline=None)
def test_the_gradient_vanishes_and_no_neighbour_is_better(loss, penalize_bias, seed, l2, fit_bias):
    problem = Linear(random_clients(seed), loss, l2, penalize_bias, fit_bias)
    best = problem.optimum()
    assert np.linalg.norm(mean_gradient(problem, best)) < 1e-12
    lowest = problem.evaluate(best)["objective"]
    for direction in np.random.default_rng(seed).normal(size=(5, len(best))):
        assert problem.evaluate(best + 1e-3 * direction)["objective"] > lowest


def test_a_general_minimiser_finds_the_same_point():
    problem = Linear(random_clients(4), "logistic", 0.05, penalize_bias=False)
    found = minimize(lambda p: problem.evaluate(p)["objective"], np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(problem.optimum(), found.x, atol=1e-5)


def test_of_many_least_squares_minimisers_the_shortest():
    data = random_clients(9, sizes=(2, 2), d=8)
    expected = lstsq(data.x, data.y)[0]
    np.testing.assert_allclose(Linear(data, fit_bias=False).optimum(), expected, atol=1e-9)


def test_no_single_minimiser_no_answer():
    data = random_clients(1)
    assert Linear(data, "hinge", l2=1.0).optimum() is None
    assert Linear(data, "logistic").optimum() is None
    assert Linear(data, "squared_hinge").optimum() is None
    one_label = Packed(data.x, np.ones(len(data.y)), data.offsets)
    assert Linear(one_label, "logistic", l2=1.0, penalize_bias=False).optimum() is None
    assert Linear(one_label, "logistic", l2=1.0).optimum() is not None


def test_single_precision_data_have_a_double_precision_optimum():
    problem = Linear(random_clients(2, dtype=np.float32), "logistic", l2=0.1)
    best = problem.optimum()
    assert best.dtype == np.float64
    assert np.linalg.norm(mean_gradient(problem, best)) < 1e-12


def test_it_is_found_once_and_cannot_be_spoilt(monkeypatch):
    problem = Linear(random_clients(2), l2=0.1)
    first = problem.optimum()
    first[:] = np.nan
    monkeypatch.setattr("asyncfed.problems.linear.newton_minimum", None)
    assert np.isfinite(problem.optimum()).all()


def test_chunks_cut_anywhere_give_the_same_objective(monkeypatch):
    data = random_clients(6)
    whole = Objective(data.x, data.y, data.offsets, loss_code("logistic"), np.full(4, 0.1))
    point = np.array([0.3, -0.2, 0.5, 0.1])
    value, gradient = whole.value_and_gradient(point)
    hessian = whole.hessian(point)
    monkeypatch.setattr(chunked, "_CHUNK_CELLS", 28)
    np.testing.assert_allclose(whole.value_and_gradient(point)[1], gradient, rtol=1e-12)
    np.testing.assert_allclose(whole.hessian(point), hessian, rtol=1e-12)
    assert whole.value_and_gradient(point)[0] == pytest.approx(value, rel=1e-13)


def test_hessian_is_the_derivative_of_the_gradient():
    data = random_clients(6)
    whole = Objective(data.x, data.y, data.offsets, loss_code("logistic"), np.array([0.1, 0.1, 0.1, 0.0]))
    point = np.array([0.3, -0.2, 0.5, 0.1])
    for j, step in enumerate(np.eye(4) * 1e-5):
        rise = whole.value_and_gradient(point + step)[1] - whole.value_and_gradient(point - step)[1]
        np.testing.assert_allclose(whole.hessian(point)[j], rise / 2e-5, atol=1e-9)


@pytest.mark.parametrize("huge", [np.inf, 1e200])
def test_data_beyond_double_precision_are_refused_with_advice(huge):
    data = Packed([[1.0], [huge]], [1.0, 2.0], [0, 2])
    broken = Objective(data.x, data.y, data.offsets, loss_code("least_squares"), np.zeros(2))
    with np.errstate(all="ignore"), pytest.raises(DataError, match="Standardise the features, or raise l2"):
        newton_minimum(broken)
