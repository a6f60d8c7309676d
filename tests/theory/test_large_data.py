"""Many params without any (p, p) array, and many clients in one pass."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from asyncfed.theory import spectra
from asyncfed.theory.constants import constants
from asyncfed.theory.curvature import client_curvature, objective_curvature
from asyncfed.theory.linear_data import LinearData


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("free", [False, True])
def test_lanczos_gives_what_the_dense_matrices_give_rounded_up(monkeypatch, kind, free):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 12)) * (rng.random((60, 12)) < 0.5)
    data = LinearData(kind(x), rng.normal(size=60), np.array([0, 25, 60]), l2=0.2, penalize_bias=not free)
    dense, whole = client_curvature(data), objective_curvature(data)
    monkeypatch.setattr(spectra, "MOST_PARAMS_WITH_A_MATRIX", 5)
    monkeypatch.setattr("asyncfed.theory.curvature.MOST_PARAMS_WITH_A_MATRIX", 5)
    monkeypatch.setattr(spectra, "_MOST_ROWS_WITH_A_MATRIX", 5)
    free_of_matrices, large = client_curvature(data), objective_curvature(data)
    assert (free_of_matrices.largest >= dense.largest).all()
    np.testing.assert_allclose(free_of_matrices.largest, dense.largest, rtol=1e-5)
    assert (free_of_matrices.smallest <= dense.smallest).all()
    assert whole[1] <= large[1] <= whole[1] * (1 + 1e-5)
    assert large[0] == data.smallest_penalty <= whole[0]


@pytest.mark.parametrize("num_clients", [1, 6])
def test_ten_thousand_params_never_make_a_square_matrix(num_clients):
    rng = np.random.default_rng(1)
    rows, features = 2400, 10_000
    x = sparse.random_array((rows, features), density=0.002, rng=rng, format="csr")
    y = x @ rng.normal(size=features)
    offsets = np.linspace(0, rows, num_clients + 1).astype(int)
    tracemalloc.start()
    found = constants(LinearData(x, y, offsets, l2=1e-3), batch_size=8, radius=1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6 < 8 * features**2
    gradient = LinearData(x, y, offsets, l2=1e-3).objective().value_and_gradient(found.optimum)[1]
    assert np.linalg.norm(gradient) < 1e-11
    assert found.strong_convexity == 1e-3 == found.objective_strong_convexity
    assert found.smoothness >= found.objective_smoothness * (1 - 1e-6)
    assert "10001 × 10001" in found.not_applicable["phi2"]


def test_five_thousand_clients_of_any_size_as_one_by_one():
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 25, size=5000)
    x = rng.normal(size=(sizes.sum(), 5))
    data = LinearData(x, rng.normal(size=len(x)), np.append(0, np.cumsum(sizes)), l2=0.01)
    convex, smooth = client_curvature(data)
    for client in range(0, 5000, 613):
        rows = slice(data.offsets[client], data.offsets[client + 1])
        alone = client_curvature(LinearData(x[rows], data.y[rows], np.array([0, sizes[client]]), l2=0.01))
        assert alone.smallest[0] == pytest.approx(convex[client], rel=1e-9)
        assert alone.largest[0] == pytest.approx(smooth[client], rel=1e-12)
