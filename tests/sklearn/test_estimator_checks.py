"""All of scikit-learn's own checks of an estimator, with the federation that a fit without groups has."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from asyncfed.sklearn import (
    FederatedLinearRegression,
    FederatedLinearSVC,
    FederatedLogisticRegression,
    FederatedRidge,
)


@parametrize_with_checks([FederatedRidge(), FederatedLogisticRegression()])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([FederatedLinearRegression(), FederatedLinearSVC()])
def test_scikit_learns_checks_pass_for_the_others(estimator, check):
    check(estimator)
