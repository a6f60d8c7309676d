"""Gradient noise, against enumeration of every batch and against grids on balls."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.losses import loss_slopes
from asyncfed.theory import noise, quadratic_noise
from asyncfed.theory.linear_data import LinearData

LOSSES = ["least_squares", "mse", "logistic", "hinge", "squared_hinge", "huber_hinge"]


def random_data(seed, loss, sizes=(5, 1, 4), d=2, kind=np.asarray, **model):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(sizes), d))
    y = np.where(x.sum(axis=1) + rng.normal(size=len(x)) > 0, 1.0, -1.0)
    return LinearData(kind(x), y, np.cumsum([0, *sizes]), loss, **model)


def row_gradients(data, client, point):
    rows = slice(data.offsets[client], data.offsets[client + 1])
    x = data.x[rows].toarray() if sparse.issparse(data.x) else data.x[rows]
    z = np.column_stack([x, np.ones((len(x), int(data.fit_bias)))])
    slopes = loss_slopes(data.loss_code, z @ point, data.y[rows], data.hinge_width)
    return slopes[:, None] * z + data.penalty * point


def spread(means, centre):
    return np.mean([np.sum((np.mean(mean, axis=0) - centre) ** 2) for mean in means])


@given(
    seed=st.integers(0, 9999),
    loss=st.sampled_from(LOSSES),
    batch=st.integers(1, 6),
    l2=st.sampled_from([0.0, 0.5]),
    kind=st.sampled_from([np.asarray, sparse.csr_array]),
)
@settings(max_examples=40, deadline=None)
def test_the_variance_of_every_batch_there_is(seed, loss, batch, l2, kind):
    data = random_data(seed, loss, kind=kind, l2=l2)
    point = np.random.default_rng(seed + 1).normal(size=3)
    without = noise.gradient_variance(data, point, batch)
    replaced = noise.gradient_variance(data, point, min(batch, 3), "with_replacement")
    for client, size in enumerate(data.sizes):
        rows = row_gradients(data, client, point)
        subsets = [rows[list(chosen)] for chosen in combinations(range(size), min(batch, size))]
        assert without[client] == pytest.approx(spread(subsets, rows.mean(axis=0)), abs=1e-12)
        tuples = [rows[list(chosen)] for chosen in product(range(size), repeat=min(batch, 3))]
        assert replaced[client] == pytest.approx(spread(tuples, rows.mean(axis=0)), abs=1e-12)


def test_single_rows_unless_told_and_reshuffled_by_itself_as_without_replacement():
    data = random_data(1, "mse")
    point = np.ones(3)
    np.testing.assert_array_equal(noise.gradient_variance(data, point), noise.gradient_variance(data, point, 1))
    np.testing.assert_array_equal(
        noise.gradient_variance(data, point, 2, "reshuffled"), noise.gradient_variance(data, point, 2)
    )
    assert [draw for draw, unbiased in noise.CONDITIONALLY_UNBIASED.items() if not unbiased] == ["reshuffled"]


@pytest.mark.parametrize("batches", [0, 1, 2, 3])
def test_summed_batches_of_a_reshuffled_epoch(batches):
    rng = np.random.default_rng(7)
    rows, batch = rng.normal(size=6), 2
    sums = [
        sum(np.mean(rows[list(order[batch * k : batch * k + batch])]) for k in range(batches))
        for order in permutations(range(6))
    ]
    assert np.var(sums) == pytest.approx(noise.epoch_share(6, batch, batches) * np.var(rows), abs=1e-14)
    assert noise.epoch_share(6, batch, batches) <= batches * noise.batch_share(6, batch) + 1e-15


def largest_variance(data, client, points):
    """Over all the points at once, for a quadratic loss."""
    rows = slice(data.offsets[client], data.offsets[client + 1])
    z = np.column_stack([data.x[rows], np.ones(data.sizes[client])])
    slopes = {"least_squares": 1.0, "mse": 2.0}[data.loss] * (points @ z.T - data.y[rows])
    gradients = slopes[:, :, None] * z
    gaps = gradients - gradients.mean(axis=1, keepdims=True)
    return (gaps**2).sum(axis=2).mean(axis=1).max()


@given(
    seed=st.integers(0, 9999), loss=st.sampled_from(["least_squares", "mse"]), radius=st.sampled_from([0.1, 1.0, 7.0])
)
@settings(max_examples=40, deadline=None)
def test_on_a_disc_the_largest_noise_is_the_one_a_grid_finds(seed, loss, radius):
    data = random_data(seed, loss, d=1, l2=0.3)
    centre = np.random.default_rng(seed + 1).normal(size=2)
    found = noise.gradient_variance_on_ball(data, centre, radius)
    angles = np.linspace(0, 2 * np.pi, 721)
    rim = centre + radius * np.column_stack([np.cos(angles), np.sin(angles)])
    grid = np.array([largest_variance(data, client, rim) for client in range(data.num_clients)])
    inside = noise.gradient_variance(data, centre + 0.6 * radius * np.array([0.6, 0.8]))
    assert (found >= grid * (1 - 1e-9) - 1e-12).all()
    assert (found <= grid * 1.0005 + 1e-9).all()
    assert (inside <= found * (1 + 1e-9) + 1e-12).all()
    assert (noise.gradient_variance_ball_bound(data, centre, radius) >= found * (1 - 1e-9)).all()


@given(seed=st.integers(0, 9999), p=st.integers(1, 4), hard=st.booleans(), radius=st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=80, deadline=None)
def test_the_secular_equation_with_and_without_the_hard_case(seed, p, hard, radius):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.normal(size=(p, p)))[0]
    values = np.sort(rng.random(p)) * 3
    share = rng.normal(size=p)
    if hard:
        share[-1] = 0.0
    matrix, linear = (vectors * values) @ vectors.T, vectors @ share
    found = quadratic_noise.maximum_on_sphere(matrix, linear, radius)
    steps = rng.normal(size=(4000, p))
    steps = np.vstack([steps, vectors.T, -vectors.T])
    steps *= radius / np.linalg.norm(steps, axis=1)[:, None]
    for _ in range(60):  # power iterations for a convex function on the sphere climb to a local maximum
        climbed = steps @ matrix + linear
        steps = radius * climbed / np.linalg.norm(climbed, axis=1)[:, None]
    best = np.max(np.einsum("ij,jk,ik->i", steps, matrix, steps) + 2 * steps @ linear)
    assert found >= best - 1e-9 * abs(best)
    if not hard or p == 1:
        assert found == pytest.approx(best, rel=1e-3)


def test_the_hard_case_by_hand():
    # v·diag(1, 4)v + 2·3 v_1 on |v| = 2: v_1 = 1 and v_2² = 3, so 1 + 12 + 6.
    assert quadratic_noise.maximum_on_sphere(np.diag([1.0, 4.0]), np.array([3.0, 0.0]), 2.0) == pytest.approx(19.0)
    # A linear part so strong that the top eigenvector gets nothing: v = (2, 0), 4 + 40.
    assert quadratic_noise.maximum_on_sphere(np.diag([1.0, 4.0]), np.array([10.0, 0.0]), 2.0) == pytest.approx(44.0)
    assert quadratic_noise.maximum_on_sphere(np.diag([1.0, 4.0]), np.zeros(2), 3.0) == pytest.approx(36.0)


@given(seed=st.integers(0, 9999), loss=st.sampled_from(LOSSES[2:]), radius=st.sampled_from([0.0, 0.5, 4.0]))
@settings(max_examples=40, deadline=None)
def test_losses_with_labels_stay_below_their_bound(seed, loss, radius):
    data = random_data(seed, loss, sizes=(6, 3))
    rng = np.random.default_rng(seed + 1)
    centre = rng.normal(size=3)
    bound = noise.gradient_variance_on_ball(data, centre, radius, 2)
    everywhere = noise.gradient_variance_everywhere(data, 2)
    for step in rng.normal(size=(30, 3)):
        seen = noise.gradient_variance(data, centre + 0.999 * radius * step / np.linalg.norm(step), 2)
        assert (seen <= bound * (1 + 1e-9) + 1e-12).all()
        assert (seen <= everywhere).all()
        assert (noise.gradient_variance(data, 100 * step, 2) <= everywhere).all()


def test_a_client_larger_than_a_block_gives_the_same(monkeypatch):
    for kind in (np.asarray, sparse.csr_array):
        data = random_data(3, "least_squares", sizes=(40, 3), d=4, kind=kind)
        whole = noise.gradient_variance_on_ball(data, np.ones(5), 2.0)
        with monkeypatch.context() as patch:
            for room in ("blocks", "spectra", "quadratic_noise"):
                patch.setattr(f"asyncfed.theory.{room}.CELLS_AT_ONCE", 25)
            np.testing.assert_allclose(noise.gradient_variance_on_ball(data, np.ones(5), 2.0), whole, rtol=1e-10)


def test_the_noise_of_squares_is_bounded_nowhere():
    for loss in ("least_squares", "mse", "squared_hinge"):
        assert np.isinf(noise.gradient_variance_everywhere(random_data(1, loss))).all()


def test_wrong_arguments_are_named():
    data = random_data(1, "mse")
    with pytest.raises(ConfigError, match=r'draw is "reshufled"\. Did you mean "reshuffled"'):
        noise.gradient_variance(data, np.zeros(3), 2, "reshufled")
    with pytest.raises(ConfigError, match="batch_size is 0; it must be a whole number of at least 1"):
        noise.gradient_variance(data, np.zeros(3), 0)
    with pytest.raises(ConfigError, match="radius is -2"):
        noise.gradient_variance_on_ball(data, np.zeros(3), -2)
    with pytest.raises(ConfigError, match=r"at has shape \(2,\)"):
        noise.gradient_variance(data, np.zeros(2))
    with pytest.raises(ConfigError, match="4 batches of 2 rows do not fit into an epoch of 7"):
        noise.epoch_share(7, 2, 4)
