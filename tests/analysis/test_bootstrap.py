"""Intervals by drawing rows again agree with the normal ones, and are the same every time."""

import numpy as np
import pytest

from asyncfed.analysis import bootstrap
from asyncfed.analysis.bootstrap import mean_intervals


def test_they_agree_with_the_normal_interval(monkeypatch):
    values = np.random.default_rng(1).normal(3.0, 2.0, size=1500)
    offsets = np.array([0, 500, 1500])
    drawn = mean_intervals(values, offsets, seed=0)
    monkeypatch.setattr(bootstrap, "MOST_RESAMPLED", 10)
    normal = mean_intervals(values, offsets, seed=0)
    np.testing.assert_allclose(drawn, normal, atol=0.02)
    reach = 1.96 * values[:500].std(ddof=1) / 500**0.5
    assert normal[0][0] == pytest.approx(values[:500].mean() - reach, abs=1e-4)


def test_they_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(2)
    values, offsets = rng.exponential(1.0, size=400 * 100), np.arange(0, 40_001, 100)
    low, high = mean_intervals(values, offsets, seed=3)
    assert 0.9 < ((low <= 1.0) & (high >= 1.0)).mean() < 0.98


@pytest.mark.parametrize("rows", [2, 3, 6, 15])
def test_few_rows_are_not_taken_for_many(rows):
    values = np.random.default_rng(rows).normal(1.0, size=400 * rows)
    low, high = mean_intervals(values, np.arange(0, 400 * rows + 1, rows), seed=3)
    assert 0.92 < ((low <= 1.0) & (high >= 1.0)).mean() <= 1.0


def test_the_same_rows_have_the_same_interval():
    values, offsets = np.arange(20.0), np.array([0, 8, 20])
    once, twice = mean_intervals(values, offsets, 4), mean_intervals(values, offsets, 4)
    np.testing.assert_array_equal(once, twice)
    assert not np.array_equal(once, mean_intervals(values, offsets, 5))


def test_a_single_row_says_nothing():
    low, high = mean_intervals(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 1, 3]), 0)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, True, False]
