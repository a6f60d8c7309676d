"""Smoothness and strong convexity, against dense eigenvalues and against what they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels.losses import loss_curvatures, loss_slopes
from asyncfed.theory import curvature, spectra
from asyncfed.theory.linear_data import LinearData

SMOOTH = ["least_squares", "mse", "logistic", "squared_hinge", "huber_hinge"]
LARGEST = {"least_squares": 1.0, "mse": 2.0, "logistic": 0.25, "squared_hinge": 1.0, "huber_hinge": 2.0}


def random_data(seed, loss="least_squares", sizes=(9, 1, 4, 9, 6), d=3, kind=np.asarray, **model):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(sizes), d)) * (rng.random((sum(sizes), d)) < 0.7)
    y = np.where(x.sum(axis=1) + rng.normal(size=len(x)) > 0, 1.0, -1.0)
    width = {"hinge_width": 0.5} if loss == "huber_hinge" else {}
    return LinearData(kind(x), y, np.cumsum([0, *sizes]), loss, **model, **width)


def dense_rows(data, client):
    rows = slice(data.offsets[client], data.offsets[client + 1])
    x = data.x[rows].toarray() if sparse.issparse(data.x) else data.x[rows]
    return np.column_stack([x, np.ones((len(x), int(data.fit_bias)))]), data.y[rows]


def dense_hessian_bound(data, client):
    z, _ = dense_rows(data, client)
    return LARGEST[data.loss] * z.T @ z / len(z) + np.diag(data.penalty)


def client_gradient(data, client, point):
    z, y = dense_rows(data, client)
    return loss_slopes(data.loss_code, z @ point, y, data.hinge_width) @ z / len(y) + data.penalty * point


MODELS = st.fixed_dictionaries(
    {"l2": st.sampled_from([0.0, 0.3]), "penalize_bias": st.booleans(), "fit_bias": st.booleans()}
)


@given(
    seed=st.integers(0, 9999),
    d=st.integers(1, 12),
    model=MODELS,
    loss=st.sampled_from(SMOOTH),
    kind=st.sampled_from([np.asarray, sparse.csr_array]),
    cells=st.sampled_from([1, 60, 10**6]),
)
@settings(max_examples=120, deadline=None)
def test_every_way_gives_the_eigenvalues_of_the_dense_matrices(seed, d, model, loss, kind, cells):
    data = random_data(seed, loss, d=d, kind=kind, **model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectra, "CELLS_AT_ONCE", cells)
        convex, smooth = curvature.client_curvature(data)
    values = [np.linalg.eigvalsh(dense_hessian_bound(data, client)) for client in range(data.num_clients)]
    np.testing.assert_allclose(smooth, [each[-1] for each in values], rtol=1e-10)
    if data.is_quadratic:
        np.testing.assert_allclose(convex, [max(each[0], 0.0) for each in values], atol=1e-9)
        flat = [each[0] < 1e-12 for each in values]
        assert (convex[flat] == 0.0).all()
    else:
        assert (convex == data.smallest_penalty).all()


@given(seed=st.integers(0, 9999), loss=st.sampled_from(SMOOTH), model=MODELS)
@settings(max_examples=40, deadline=None)
def test_the_objective_itself(seed, loss, model):
    data = random_data(seed, loss, **model)
    low, high = curvature.objective_curvature(data)
    values = np.linalg.eigvalsh(np.mean([dense_hessian_bound(data, c) for c in range(data.num_clients)], axis=0))
    assert high == pytest.approx(values[-1], rel=1e-12)
    assert low == pytest.approx(values[0] if data.is_quadratic else data.penalty.min(), abs=1e-9)
    assert high <= curvature.smoothness(data) * (1 + 1e-12)
    assert low >= curvature.strong_convexity(data) * (1 - 1e-9) - 1e-12


@given(seed=st.integers(0, 9999), loss=st.sampled_from(SMOOTH), model=MODELS, spread=st.sampled_from([0.1, 3.0]))
@settings(max_examples=60, deadline=None)
def test_no_pair_of_points_breaks_what_is_promised(seed, loss, model, spread):
    data = random_data(seed, loss, **model)
    convex, smooth = curvature.client_curvature(data)
    rng = np.random.default_rng(seed + 1)
    for client in range(data.num_clients):
        for _ in range(5):
            p, q = spread * rng.normal(size=(2, data.num_params))
            rise = client_gradient(data, client, p) - client_gradient(data, client, q)
            assert np.linalg.norm(rise) <= smooth[client] * np.linalg.norm(p - q) * (1 + 1e-9)
            assert rise @ (p - q) >= (convex[client] - 1e-9) * np.sum((p - q) ** 2)


def test_smoothness_is_reached_so_a_smaller_number_would_be_wrong():
    data = random_data(5, "least_squares")
    smooth = curvature.client_smoothness(data)
    for client in range(data.num_clients):
        top = np.linalg.eigh(dense_hessian_bound(data, client))[1][:, -1]
        rise = client_gradient(data, client, top) - client_gradient(data, client, 0 * top)
        assert np.linalg.norm(rise) > 0.999999 * smooth[client]


@given(
    seed=st.integers(0, 9999),
    loss=st.sampled_from(["logistic", "squared_hinge", "huber_hinge"]),
    radius=st.sampled_from([0.0, 0.3, 2.0]),
)
@settings(max_examples=40, deadline=None)
def test_on_a_ball_the_least_curvature_is_never_undercut(seed, loss, radius):
    data = random_data(seed, loss, l2=0.1, penalize_bias=False)
    centre = np.random.default_rng(seed).normal(size=4) * 0.3
    least = curvature.least_curvature_on_ball(data, radius, centre)
    convex = curvature.client_strong_convexity(data, radius, centre)
    of_objective = curvature.objective_curvature(data, radius, centre)[0]
    steps = np.random.default_rng(seed + 1).normal(size=(20, 4))
    for point in centre + radius * 0.999 * steps / np.linalg.norm(steps, axis=1)[:, None]:
        hessians = []
        for client in range(data.num_clients):
            z, y = dense_rows(data, client)
            bends = loss_curvatures(data.loss_code, z @ point, y, data.hinge_width)
            assert bends.min() >= least[client] - 1e-12
            hessians.append(z.T @ (bends[:, None] * z) / len(z) + np.diag(data.penalty))
            assert np.linalg.eigvalsh(hessians[-1])[0] >= convex[client] - 1e-10
        assert np.linalg.eigvalsh(np.mean(hessians, axis=0))[0] >= of_objective - 1e-10


def test_the_ball_of_the_logistic_loss_by_its_formula():
    data = random_data(8, "logistic", sizes=(9, 9), l2=0.05)
    centre, radius = np.array([0.2, -0.1, 0.4, 0.3]), 0.7
    for client, found in enumerate(curvature.client_strong_convexity(data, radius, centre)):
        z, _ = dense_rows(data, client)
        u = np.abs(z @ centre) + radius * np.linalg.norm(z, axis=1)
        kappa = min(1 / (1 + np.exp(u)) * (1 - 1 / (1 + np.exp(u))))
        assert found == pytest.approx(0.05 + kappa * np.linalg.eigvalsh(z.T @ z / 9)[0], rel=1e-10)


@given(seed=st.integers(0, 9999), loss=st.sampled_from(SMOOTH), model=MODELS)
@settings(max_examples=30, deadline=None)
def test_single_rows(seed, loss, model):
    data = random_data(seed, loss, **model)
    found = curvature.largest_row_smoothness(data)
    for client in range(data.num_clients):
        rows, _ = dense_rows(data, client)
        tops = [np.linalg.eigvalsh(LARGEST[loss] * np.outer(z, z) + np.diag(data.penalty))[-1] for z in rows]
        assert found[client] == pytest.approx(max(tops), rel=1e-10)


def test_the_plain_hinge_is_not_smooth():
    data = random_data(1, "hinge", l2=0.2)
    assert np.isinf(curvature.client_smoothness(data)).all()
    assert curvature.strong_convexity(data) == 0.2
    assert curvature.objective_curvature(data) == (0.2, np.inf)


def test_a_ball_needs_a_radius_and_a_centre():
    with pytest.raises(ConfigError, match="radius is -1; it must be zero or a positive number"):
        curvature.client_strong_convexity(random_data(1, "logistic"), radius=-1, centre=np.zeros(4))
    with pytest.raises(DataError, match=r"needs the optimum.*Give an l2 above 0"):
        curvature.client_strong_convexity(random_data(1, "logistic"), radius=1.0)
