from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.privacy.gaussian import epsilon_of
from asyncfed.privacy.tree import (
    epsilon_of_tree,
    epsilon_of_zcdp,
    tree_multiplier_for,
    tree_sensitivity,
    tree_sensitivity_bound,
    tree_sensitivity_by_search,
    zcdp_of_tree,
)

PUBLISHED = [
    # participations, separation, releases, S: the reference values in the tests of TensorFlow Privacy 0.9.0
    # (tree_aggregation_accountant_test.py), the last of which is the paper's example against placing greedily.
    (1, 7, 8, 4), (3, 3, 9, 11), (3, 2, 7, 9), (8, 2, 24, 88), (11, 0, 8, 120), (200, 0, 8, 120),
    (3, 0, 3, 7), (8, 0, 8, 120), (11, 0, 11, 127), (19, 0, 19, 503), (2, 0, 3, 6), (2, 0, 8, 14), (2, 0, 19, 18),
]  # fmt: skip


@pytest.mark.parametrize(("participations", "separation", "releases", "expected"), PUBLISHED)
def test_published_sensitivities(participations, separation, releases, expected):
    assert tree_sensitivity(releases, participations, separation) == expected


@given(st.integers(1, 13), st.integers(1, 5), st.integers(0, 5))
@settings(max_examples=80, deadline=None)
def test_the_search_of_all_placements_agrees(releases, participations, separation):
    expected = tree_sensitivity_by_search(releases, participations, separation)
    assert tree_sensitivity(releases, participations, separation) == expected
    assert tree_sensitivity_bound(releases, participations, separation) >= expected


@given(st.integers(1, 600), st.integers(1, 12), st.integers(0, 20))
@settings(max_examples=30, deadline=None)
def test_the_bound_is_one(releases, participations, separation):
    assert tree_sensitivity_bound(releases, participations, separation) >= tree_sensitivity(
        releases, participations, separation
    )


def test_large_trees_take_the_bound():
    assert tree_sensitivity(100_000, 50, 1000) == tree_sensitivity_bound(100_000, 50, 1000)


@pytest.mark.parametrize(("multiplier", "published"), [(1.13, 19.74), (8.83, 2.04)])
def test_the_papers_epsilons_are_not_exceeded(multiplier, published):
    """StackOverflow, 1600 releases, one participation, delta 1e-6: the paper's conversion is looser than the exact."""
    exact = epsilon_of_tree(multiplier, 1600, 1, 0, 1e-6)
    assert 0.75 * published < exact < published
    assert exact < epsilon_of_zcdp(zcdp_of_tree(multiplier, 1600, 1, 0), 1e-6)


def test_noise_and_epsilon_are_inverse():
    multiplier = tree_multiplier_for(2.0, 100, 10, 3, 1e-5)
    assert epsilon_of_tree(multiplier, 100, 10, 3, 1e-5) == pytest.approx(2.0)
    assert zcdp_of_tree(multiplier, 100, 10, 3) == pytest.approx(tree_sensitivity(100, 10, 3) / 2 / multiplier**2)


def test_one_release_is_the_gaussian_mechanism():
    assert epsilon_of_tree(3.0, 1, 1, 0, 1e-5) == epsilon_of(3.0, 1, 1e-5)
    assert epsilon_of_tree(3.0, 8, 0, 0, 1e-5) == 0.0
    assert epsilon_of_tree(3.0, 8, 1, 0, 1e-5) == pytest.approx(epsilon_of(3.0 / sqrt(4), 1, 1e-5))


def test_impossible_trees_are_refused():
    with pytest.raises(ConfigError, match="releases is 0"):
        tree_sensitivity(0, 1, 0)
    with pytest.raises(ConfigError, match="separation is -1"):
        tree_sensitivity(1, 1, -1)
    with pytest.raises(ConfigError, match="without noise"):
        epsilon_of_tree(0.0, 8, 1, 0, 1e-5)
