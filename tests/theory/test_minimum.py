"""The optimum, its value and the way there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from asyncfed.core.errors import DataError
from asyncfed.problems import newton
from asyncfed.problems.conjugate_gradient import conjugate_gradient
from asyncfed.problems.newton import newton_minimum
from asyncfed.theory import minimum
from asyncfed.theory.linear_data import LinearData


def random_data(seed, loss, sizes=(30, 5, 20), d=3, kind=np.asarray, **model):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(sizes), d)) * (rng.random((sum(sizes), d)) < 0.8)
    y = np.where(x.sum(axis=1) + rng.normal(size=len(x)) > 0, 1.0, -1.0)
    return LinearData(kind(x), y, np.cumsum([0, *sizes]), loss, **model)


@pytest.mark.parametrize("loss", ["least_squares", "mse", "logistic", "squared_hinge", "huber_hinge"])
@given(seed=st.integers(0, 9999), kind=st.sampled_from([np.asarray, sparse.csr_array]), free=st.booleans())
@settings(max_examples=12, deadline=None)
def test_the_gradient_vanishes_with_and_without_a_hessian(loss, seed, kind, free):
    data = random_data(seed, loss, kind=kind, l2=0.05, penalize_bias=not free)
    best = minimum.optimum(data)
    value, gradient = data.objective().value_and_gradient(best)
    assert np.linalg.norm(gradient) < 1e-11
    assert minimum.optimal_value(data) == value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newton, "_MOST_PARAMS_WITH_A_HESSIAN", 0)
        np.testing.assert_allclose(newton_minimum(data.objective()), best, atol=1e-8)


@pytest.mark.parametrize("most_params_with_a_hessian", [0, 1500])
@pytest.mark.parametrize("width", [0.01, 0.1, 5.0])
@pytest.mark.parametrize("seed", [7, 21, 26])
def test_even_a_narrow_huber_hinge_is_minimised(monkeypatch, most_params_with_a_hessian, width, seed):
    monkeypatch.setattr(newton, "_MOST_PARAMS_WITH_A_HESSIAN", most_params_with_a_hessian)
    data = random_data(seed, "huber_hinge", sizes=(90, 60), d=6, l2=1e-4, penalize_bias=False, hinge_width=width)
    assert np.linalg.norm(data.objective().value_and_gradient(minimum.optimum(data))[1]) < 1e-8


def test_weights_of_clients_move_the_optimum_towards_the_heavy_ones():
    data = LinearData.of_clients([([[0.0]], [0.0]), ([[0.0]], [1.0])])
    assert minimum.optimum(data)[1] == pytest.approx(0.5)
    assert minimum.optimum(data, np.array([0.25, 0.75]))[1] == pytest.approx(0.75)
    equal = random_data(3, "logistic", l2=0.1)
    np.testing.assert_allclose(minimum.optimum(equal, np.full(3, 1 / 3)), minimum.optimum(equal), atol=1e-12)


def test_products_are_those_of_the_hessian_dense_or_sparse():
    for kind in (np.asarray, sparse.csr_array, lambda x: x.astype(np.float32)):
        objective = random_data(2, "logistic", kind=kind, l2=0.1, penalize_bias=False).objective()
        point, vector = np.array([0.1, -0.4, 0.3, 0.2]), np.array([1.0, 2.0, -1.0, 0.5])
        np.testing.assert_allclose(
            objective.hessian_product(point)(vector), objective.hessian(point) @ vector, rtol=1e-12
        )


def test_conjugate_gradients_find_the_shortest_solution_and_stop_on_flat_ground():
    rng = np.random.default_rng(4)
    wide = rng.normal(size=(5, 9))
    target = wide.T @ rng.normal(size=5)
    found = conjugate_gradient(lambda v: wide.T @ (wide @ v), target, 1e-12, 50)
    np.testing.assert_allclose(found, np.linalg.pinv(wide.T @ wide) @ target, atol=1e-9)
    assert conjugate_gradient(lambda v: 0 * v, np.ones(3), 1e-12, 50).tolist() == [0, 0, 0]


@given(seed=st.integers(0, 9999))
@settings(max_examples=15, deadline=None)
def test_the_linear_programme_finds_a_minimiser_of_the_hinge(seed):
    data = random_data(seed, "hinge", sizes=(7, 12), d=2)
    best = minimum.optimum(data)
    lowest = minimum.optimal_value(data, best)
    for step in np.random.default_rng(seed).normal(size=(40, 3)):
        for size in (1e-3, 0.1, 3.0):
            assert data.objective().value_and_gradient(best + size * step)[0] >= lowest - 1e-9


def test_separable_or_not():
    apart = [([[1.0], [-2.0]], [1, -1])]
    mixed = [([[1.0], [2.0], [3.0]], [1, -1, 1])]
    for loss in ("hinge", "logistic", "squared_hinge", "huber_hinge"):
        assert minimum.separable(LinearData.of_clients(apart, loss=loss)) is True
        assert minimum.separable(LinearData.of_clients(mixed, loss=loss)) is False
    assert minimum.optimal_value(LinearData.of_clients(apart, loss="hinge")) == pytest.approx(0.0, abs=1e-12)
    assert minimum.optimal_value(LinearData.of_clients(mixed, loss="hinge")) == pytest.approx(2 / 3)
    assert minimum.separable(LinearData.of_clients(apart)) is None


def test_why_there_is_none(monkeypatch):
    assert "Give an l2 above 0" in minimum.why_no_optimum(random_data(1, "logistic"))
    assert "quadratic programme" in minimum.why_no_optimum(random_data(1, "hinge", l2=1.0))
    alike = LinearData.of_clients([([[1.0]], [1.0])], loss="logistic", l2=1.0, penalize_bias=False)
    assert "grow for ever" in minimum.why_no_optimum(alike)
    monkeypatch.setattr(minimum, "_LARGEST_PROGRAMME", 100)
    assert "too large" in minimum.why_no_optimum(random_data(1, "hinge"))
    assert minimum.separable(random_data(1, "hinge")) is None
    with pytest.raises(DataError, match=r"needs the optimum\. The loss \"logistic\" without a penalty"):
        minimum.distance_to_optimum(random_data(1, "logistic"), np.zeros(4))
