"""All of scikit-learn's own checks of an estimator, with the federation that a fit without groups has."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from asyncfed.sklearn import (
    FederatedLinearRegression,
    FederatedLinearSVC,
    FederatedLogisticRegression,
    FederatedRidge,
)

ESTIMATORS = [
    FederatedLinearRegression(),
    FederatedRidge(),
    FederatedLogisticRegression(),
    FederatedLinearSVC(),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)
