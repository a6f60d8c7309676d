import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from asyncfed.data.exchangeability import kolmogorov_smirnov, mean_distance, permutation_test, total_variation


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-4, 4)), min_size=2, max_size=40))
def test_ks_is_scipys_statistic_averaged_over_rows_ties_included(rows):
    _, owners = np.unique([owner for owner, _ in rows], return_inverse=True)
    values = np.array([value for _, value in rows], float)
    sizes = np.bincount(owners)
    oracle = sum(
        size * ks_2samp(values[owners == client], values, method="asymp").statistic for client, size in enumerate(sizes)
    )
    assert kolmogorov_smirnov(values, sizes)(owners) == pytest.approx(oracle / len(values), abs=1e-12)


def test_total_variation_by_hand():
    owners, positive = np.array([0, 0, 1, 1, 1, 1]), np.array([True, True, False, False, False, False])
    # Pooled 1/3; shares 1 and 0: (2 * 2/3 + 4 * 1/3) / 6.
    assert total_variation(positive, np.bincount(owners))(owners) == pytest.approx(4 / 9)


def test_mean_distance_is_the_mean():
    assert mean_distance([lambda owners: 1.0, lambda owners: 2.0])(np.zeros(3)) == 1.5


def test_perfect_separation_has_the_smallest_p_and_no_difference_has_one():
    owners = np.repeat([0, 1], 50)
    rng = np.random.default_rng(0)
    apart = permutation_test(kolmogorov_smirnov(np.arange(100.0), np.array([50, 50])), owners, rng)
    assert apart[0] == 0.5
    assert apart[2] == 1 / 500
    alike = permutation_test(kolmogorov_smirnov(np.ones(100), np.array([50, 50])), owners, rng)
    assert alike == (0.0, 0.0, 1.0)
