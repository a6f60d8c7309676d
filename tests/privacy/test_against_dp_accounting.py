"""Our accounting against Google's, which needs the extra `dp`: to six digits on a grid."""

from math import sqrt

import pytest

from asyncfed.privacy.gaussian import epsilon_of, multiplier_for
from asyncfed.privacy.tree import tree_sensitivity

dp_accounting = pytest.importorskip("dp_accounting")

GRID = [
    (multiplier, participations, delta)
    for multiplier in (0.3, 1.0, 4.0, 20.0)
    for participations in (1, 3, 10, 100)
    for delta in (1e-9, 1e-6, 1e-5, 1e-3)
]


@pytest.mark.parametrize(("multiplier", "participations", "delta"), GRID)
def test_epsilon_and_multiplier_to_six_digits(multiplier, participations, delta):
    expected = dp_accounting.get_epsilon_gaussian(multiplier / sqrt(participations), delta, tol=1e-13)
    epsilon = epsilon_of(multiplier, participations, delta)
    assert epsilon == pytest.approx(expected, rel=5e-7)
    sigma = dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-13)
    assert multiplier_for(epsilon, participations, delta) == pytest.approx(sigma * sqrt(participations), rel=5e-7)


@pytest.mark.parametrize(("multiplier", "participations", "delta"), [(4.0, 10, 1e-5), (1.0, 3, 1e-6)])
def test_composed_by_the_distribution_of_the_privacy_loss(multiplier, participations, delta):
    """Nothing of our composition is used there: the single release is composed numerically."""
    accountant = dp_accounting.pld.PLDAccountant()
    event = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(multiplier), participations)
    epsilon = accountant.compose(event).get_epsilon(delta)
    assert epsilon_of(multiplier, participations, delta) == pytest.approx(epsilon, rel=2e-4)


@pytest.mark.parametrize("releases", [1, 7, 100, 1600])
def test_a_tree_in_which_each_takes_part_once(releases):
    """The Renyi divergence of their event is that of one Gaussian release with our sensitivity."""
    relation = dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    theirs = dp_accounting.rdp.RdpAccountant(neighboring_relation=relation)
    theirs.compose(dp_accounting.SingleEpochTreeAggregationDpEvent(5.0, [releases]))
    ours = dp_accounting.rdp.RdpAccountant()
    ours.compose(dp_accounting.GaussianDpEvent(5.0 / sqrt(tree_sensitivity(releases, 1, 0))))
    assert ours.get_epsilon(1e-6) == pytest.approx(theirs.get_epsilon(1e-6), rel=1e-9)
