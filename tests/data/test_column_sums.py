"""Sums over columns: those of numpy, and the same bits however the rows are cut."""

import numpy as np

from asyncfed.data import column_sums
from asyncfed.data.column_sums import column_moments, weighted_columns


def test_weighted_columns_are_the_matrix_product():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(500, 7)), rng.normal(size=7)
    np.testing.assert_allclose(weighted_columns(x, weights), x @ weights, rtol=1e-12)


def test_the_size_of_a_block_changes_no_bit(monkeypatch):
    rng = np.random.default_rng(1)
    x, weights = rng.normal(size=(100, 5)).astype(np.float32), rng.normal(size=5)
    whole = weighted_columns(x, weights)
    monkeypatch.setattr(column_sums, "ROWS_AT_ONCE", 7)
    assert weighted_columns(x, weights).tobytes() == whole.tobytes()
    assert whole.dtype == np.float32


def test_moments_are_those_of_numpy_and_a_constant_column_has_no_spread():
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.normal(3.0, 2.0, 200), np.full(200, 0.1)])
    means, spreads = column_moments(x)
    np.testing.assert_allclose(means, x.mean(axis=0))
    np.testing.assert_allclose(spreads[0], x[:, 0].std())
    assert spreads[1] == 0.0
