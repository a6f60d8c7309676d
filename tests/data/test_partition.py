import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.data.partition import assign_by_dirichlet, even_sizes, quantile_bins, rows_to_move, top_up


@given(st.integers(1, 500), st.integers(1, 60))
def test_even_sizes_add_up_and_differ_by_at_most_one(rows, clients):
    sizes = even_sizes(rows, clients)
    assert sizes.sum() == rows
    assert np.ptp(sizes) <= 1


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=50), st.integers(2, 12))
def test_quantile_bins_follow_the_order_and_keep_ties_together(values, bins):
    values = np.array(values, float)
    binned = quantile_bins(values, bins)
    order = np.argsort(values, kind="stable")
    assert (np.diff(binned[order]) >= 0).all()
    assert (binned[order][1:][np.diff(values[order]) == 0] == binned[order][:-1][np.diff(values[order]) == 0]).all()
    assert binned.min() >= 0
    assert binned.max() < bins
    assert len(np.unique(binned)) >= min(2, len(np.unique(values)))


def test_distinct_values_fill_quantile_bins_evenly():
    values = np.random.default_rng(0).normal(size=1000)
    assert np.bincount(quantile_bins(values, 10)).tolist() == [100] * 10


@st.composite
def sizes_floor_and_need(draw):
    sizes = np.array(draw(st.lists(st.integers(0, 40), min_size=2, max_size=12)))
    floor = draw(st.integers(0, max(0, sizes.sum() // len(sizes))))
    return sizes, floor, int(np.maximum(floor - sizes, 0).sum())


@given(sizes_floor_and_need())
def test_moved_rows_meet_the_need_and_take_from_the_largest_only(case):
    sizes, floor, need = case
    given_rows = rows_to_move(sizes, floor, need)
    left = sizes - given_rows
    assert given_rows.sum() == need
    assert (given_rows >= 0).all()
    assert (left[given_rows > 0] >= floor).all()
    if need:
        # No client that gave rows ends more than one row below a client that gave none.
        untouched = left[given_rows == 0]
        assert left[given_rows > 0].min() >= untouched.max(initial=0) - 1


def test_top_up_moves_no_more_rows_than_are_missing():
    owners = np.zeros(100, np.int32)
    topped = top_up(owners, 5, 4, np.random.default_rng(0))
    assert np.bincount(topped).tolist() == [84, 4, 4, 4, 4]
    assert (owners == 0).all()


def test_top_up_takes_random_rows():
    moved = [np.flatnonzero(top_up(np.zeros(50, np.int32), 2, 5, np.random.default_rng(s))).tolist() for s in range(3)]
    assert moved[0] != moved[1] != moved[2]


@pytest.mark.parametrize("concentration", [1e-6, 1e6])
def test_extreme_concentrations_stay_well_defined(concentration):
    owners = assign_by_dirichlet(np.repeat([0, 1], 500), 10, concentration, 1, np.random.default_rng(1))
    sizes = np.bincount(owners, minlength=10)
    if concentration > 1:
        assert np.ptp(sizes) <= 4
    else:
        assert np.sort(sizes)[:8].tolist() == [1] * 8


def test_shares_have_the_dirichlet_spread():
    """Var(share) = (1/C)(1 - 1/C) / (C * concentration + 1)."""
    clients, concentration, rows = 5, 0.7, 4000
    sizes = [
        np.bincount(assign_by_dirichlet(np.zeros(rows, np.int64), clients, concentration, 1, rng), minlength=clients)
        for rng in map(np.random.default_rng, range(300))
    ]
    expected = (1 / clients) * (1 - 1 / clients) / (clients * concentration + 1)
    assert np.var(np.array(sizes) / rows) == pytest.approx(expected, rel=0.15)
