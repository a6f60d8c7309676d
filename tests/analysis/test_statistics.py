import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from asyncfed.analysis.statistics import (
    geometric_band,
    geometric_interval,
    independent_ratio,
    mean_interval,
    shared_grid,
    step_values,
    t_quantile,
)
from asyncfed.core.errors import ConfigError

positive = st.floats(1e-3, 1e3)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12).filter(lambda v: np.std(v) > 1e-6))
def test_mean_interval_is_scipys(values):
    ours = mean_interval(values)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert ours.n == len(values)
    np.testing.assert_allclose([ours.mean, ours.low, ours.high], [np.mean(values), low, high], rtol=1e-9, atol=1e-9)


def test_geometric_interval_by_hand():
    found = geometric_interval([1.0, 2.0, 4.0])
    # logs are 0, ln 2, 2 ln 2: s = ln 2, and t(0.975; 2) = 4.30265
    reach = np.exp(4.30265 * np.log(2) / np.sqrt(3))
    np.testing.assert_allclose([found.mean, found.low, found.high], [2.0, 2.0 / reach, 2.0 * reach], rtol=1e-5)


@given(st.lists(positive, min_size=2, max_size=8), st.floats(0.01, 100))
def test_geometric_interval_scales_with_its_values(values, factor):
    before, after = geometric_interval(values), geometric_interval(np.array(values) * factor)
    np.testing.assert_allclose(
        [after.mean, after.low, after.high], np.array([before.mean, before.low, before.high]) * factor
    )


@given(st.lists(positive, min_size=2, max_size=8))
def test_geometric_interval_of_inverses_is_the_inverse(values):
    one, other = geometric_interval(values), geometric_interval(1 / np.array(values))
    np.testing.assert_allclose([other.mean, other.low, other.high], [1 / one.mean, 1 / one.high, 1 / one.low])


def test_unusable_values_are_left_out_and_counted():
    found = geometric_interval([1.0, 4.0, np.nan, 0.0, -3.0, np.inf])
    assert (found.mean, found.n) == (pytest.approx(2.0), 2)


def test_one_value_has_a_mean_and_no_interval():
    found = mean_interval([3.0])
    assert found.mean == 3.0
    assert np.isnan(found.low)
    assert np.isnan(found.high)


def test_no_value_has_nothing():
    found = geometric_interval([])
    assert np.isnan(found.mean)
    assert found.n == 0


@pytest.mark.parametrize(("n", "level", "message"), [(1, 0.95, "there are 1. Add seeds"), (3, 1.0, "level is 1.0")])
def test_impossible_intervals_are_refused(n, level, message):
    with pytest.raises(ConfigError, match=message):
        t_quantile(n, level)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=10, unique=True), st.integers(-5, 60))
def test_step_values_read_the_last_measurement_before(places, at):
    x = np.array(sorted(places), float)
    y = np.arange(len(x)) * 10.0
    (read,) = step_values(x, y, np.array([float(at)]))
    if at < x[0] or at > x[-1]:
        assert np.isnan(read)
    else:
        assert read == max(value for place, value in zip(x, y, strict=True) if place <= at)


def test_of_several_measurements_at_one_place_the_last_is_read():
    assert step_values(np.array([0.0, 1.0, 1.0]), np.array([9.0, 5.0, 4.0]), np.array([1.0])) == [4.0]


def test_curves_without_a_common_stretch_have_no_grid():
    assert len(shared_grid([np.array([1.0, 2.0]), np.array([3.0, 4.0])], 5)) == 0
    assert len(shared_grid([np.array([0.0])], 5)) == 0


@given(st.lists(st.floats(0.1, 10.0), min_size=2, max_size=6, unique=True))
def test_the_grid_stays_within_every_curve(steps):
    curves = [np.array([0.0, step, step * 1000]) for step in steps]
    grid = shared_grid(curves, 50)
    assert all(np.isfinite(step_values(x, np.ones(3), grid)).all() for x in curves)


def test_band_is_the_geometric_mean_where_all_have_data():
    xs = [np.array([0.0, 1.0, 10.0]), np.array([0.0, 1.0, 100.0])]
    band = geometric_band(xs, [np.array([9.0, 1.0, 1.0]), np.array([9.0, 4.0, 4.0])], points=3)
    np.testing.assert_allclose(band.x[[0, -1]], [1.0, 10.0])
    np.testing.assert_allclose(band.mean, 2.0)
    np.testing.assert_allclose(band.low[0], geometric_interval([1.0, 4.0]).low)


def test_band_ends_where_a_curve_is_no_longer_finite():
    x = np.array([1.0, 10.0, 100.0])
    band = geometric_band([x, x], [np.array([3.0, 2.0, 1.0]), np.array([3.0, np.nan, np.nan])], points=30)
    assert len(band.x) > 1
    assert band.x[-1] < 10.0


def test_band_of_one_curve_has_no_width():
    band = geometric_band([np.array([1.0, 2.0])], [np.array([5.0, 4.0])], points=4)
    assert band.mean[-1] == pytest.approx(4.0)
    assert np.isnan(band.low).all()


def test_the_ratio_of_independent_samples_has_welchs_interval():
    ones, others = [1.0, 4.0, 2.0, 9.0], [3.0, 1.0, 2.0]
    found = independent_ratio(ones, others)
    theirs = stats.ttest_ind(np.log(ones), np.log(others), equal_var=False).confidence_interval(0.95)
    assert np.log([found.low, found.high]) == pytest.approx([theirs.low, theirs.high])
    assert found.mean == pytest.approx(np.exp(np.mean(np.log(ones)) - np.mean(np.log(others))))
    assert found.n == 3


def test_the_ratio_of_independent_samples_leaves_out_what_has_no_logarithm():
    found = independent_ratio([2.0, 0.0, np.nan, 2.0], [1.0, 1.0])
    assert (found.mean, found.low, found.high, found.n) == pytest.approx((2.0, 2.0, 2.0, 2))
    alone = independent_ratio([2.0], [1.0, 4.0])
    assert (alone.mean, alone.n) == (pytest.approx(1.0), 1)
    assert np.isnan(alone.low)
