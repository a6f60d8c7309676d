"""Assumptions 3 and 4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.theory import dissimilarity as room
from asyncfed.theory.dissimilarity import dissimilarity, largest_gradient_at_optimum, optimum_heterogeneity
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.minimum import optimum


def random_data(seed, loss="least_squares", sizes=(9, 2, 4, 9), d=3, kind=np.asarray, **model):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(sizes), d))
    return LinearData(kind(x), rng.normal(size=len(x)), np.cumsum([0, *sizes]), loss, **model)


def gradients(data, point):
    k = {"least_squares": 1.0, "mse": 2.0}[data.loss]
    found = []
    for first, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        x = data.x[first:last].toarray() if sparse.issparse(data.x) else data.x[first:last]
        z = np.column_stack([x, np.ones(last - first)])
        found.append(k * z.T @ (z @ point - data.y[first:last]) / (last - first) + data.penalty * point)
    return np.array(found)


@pytest.mark.slow
@given(
    seed=st.integers(0, 9999),
    loss=st.sampled_from(["least_squares", "mse"]),
    s=st.sampled_from([0.05, 1.0, 10.0]),
    l2=st.sampled_from([0.0, 0.4]),
    kind=st.sampled_from([np.asarray, sparse.csr_array]),
    cells=st.sampled_from([1, 50, 10**6]),
)
@settings(max_examples=60, deadline=None)
def test_assumption_three_holds_everywhere(seed, loss, s, l2, kind, cells):
    data = random_data(seed, loss, kind=kind, l2=l2, penalize_bias=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asyncfed.theory.spectra.CELLS_AT_ONCE", cells)
        phi2, beta2 = dissimilarity(data, s)
    best = optimum(data)
    for step in np.random.default_rng(seed + 1).normal(size=(30, 4)):
        for size in (1e-3, 1.0, 1e4):
            each = gradients(data, best + size * step)
            mean = each.mean(axis=0)
            assert np.mean(np.sum((each - mean) ** 2, axis=1)) <= (phi2 * mean @ mean + beta2) * (1 + 1e-9)


def test_phi_is_no_larger_than_it_must_be():
    data = random_data(3)
    phi2, _ = dissimilarity(data, 1e-6)
    hessians = [gradients(data, axis) - gradients(data, np.zeros(4)) for axis in np.eye(4)]
    of_client = np.array(hessians).transpose(1, 0, 2)
    mean = of_client.mean(axis=0)
    spread = np.mean([(each - mean) @ (each - mean) for each in of_client], axis=0)
    inverse = np.linalg.inv(mean)
    values, vectors = np.linalg.eigh(inverse @ spread @ inverse)
    assert phi2 == pytest.approx(values[-1], rel=1e-5)
    far = gradients(data, 1e6 * inverse @ vectors[:, -1])
    ratio = np.mean(np.sum((far - far.mean(axis=0)) ** 2, axis=1)) / np.sum(far.mean(axis=0) ** 2)
    assert ratio > 0.999 * phi2


def test_at_the_optimum():
    data = random_data(5, "mse", l2=0.1)
    each = gradients(data, optimum(data))
    assert optimum_heterogeneity(data) == pytest.approx(np.mean(np.sum(each**2, axis=1)), rel=1e-9)
    assert largest_gradient_at_optimum(data) == pytest.approx(np.max(np.linalg.norm(each, axis=1)), rel=1e-9)
    assert optimum_heterogeneity(data) <= largest_gradient_at_optimum(data) ** 2


def test_clients_with_the_same_rows_agree():
    rows = ([[1.0], [2.0], [4.0]], [1.0, 0.0, 2.0])
    phi2, beta2 = dissimilarity(LinearData.of_clients([rows, rows, rows]))
    assert phi2 < 1e-12
    assert beta2 < 1e-24


def test_where_there_is_no_number_there_is_a_reason(monkeypatch):
    with pytest.raises(ConfigError, match="s is 0; it must be a positive number"):
        dissimilarity(random_data(1), 0)
    with pytest.raises(DataError, match='no closed form for the loss "logistic"'):
        dissimilarity(LinearData.of_clients([([[1.0]], [1.0])], loss="logistic", l2=1.0))
    with pytest.raises(DataError, match=r"directions without curvature.*an l2 above 0"):
        dissimilarity(random_data(1, sizes=(1, 1)))
    monkeypatch.setattr(room, "MOST_PARAMS_WITH_A_MATRIX", 3)
    with pytest.raises(DataError, match="matrices of 4 × 4"):
        dissimilarity(random_data(1))


def test_no_batch_has_a_longer_gradient_than_the_longest_row():
    data = random_data(6, "mse", l2=0.3, penalize_bias=False)
    point = np.array([0.3, -0.2, 0.5, 1.0])
    alone = LinearData(data.x, data.y, np.arange(len(data.y) + 1), "mse", l2=0.3, penalize_bias=False)
    longest = np.linalg.norm(gradients(alone, point), axis=1).max()
    assert room.largest_row_gradient(data, point) == pytest.approx(longest, rel=1e-12)
    assert room.client_gradient_norms(data, point).max() <= longest
