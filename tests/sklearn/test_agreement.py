"""Coefficients are those of scikit-learn's own estimators on all rows together, whatever the sites."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from asyncfed.sklearn import (
    FederatedLinearRegression,
    FederatedLinearSVC,
    FederatedLogisticRegression,
    FederatedRidge,
)
from sklearn import datasets


def data_of(name):
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (StandardScaler().fit_transform(x) if name == "breast_cancer" else x), y


CASES = {
    "diabetes-linear": ("diabetes", FederatedLinearRegression(), LinearRegression()),
    "diabetes-ridge": ("diabetes", FederatedRidge(alpha=0.5), Ridge(alpha=0.5)),
    "cancer-logistic": (
        "breast_cancer",
        FederatedLogisticRegression(C=0.7),
        LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000),
    ),
    "cancer-svc": ("breast_cancer", FederatedLinearSVC(C=0.7), LinearSVC(C=0.7, dual=False, tol=1e-10)),
    "iris-softmax": (
        "iris",
        FederatedLogisticRegression(),
        LogisticRegression(tol=1e-10, max_iter=10_000, solver="newton-cg"),
    ),
    "iris-svc": ("iris", FederatedLinearSVC(), LinearSVC(dual=False, tol=1e-10)),
}


def error_of(fitted, other):
    """|w − w'| / |w'|."""
    return np.linalg.norm(fitted.coef_ - other.coef_) / np.linalg.norm(other.coef_)


def sites_by_feature(x):
    """Five sites of different sizes, each with its own range of the first feature."""
    return np.digitize(x[:, 0], np.quantile(x[:, 0], [0.1, 0.3, 0.6, 0.8]))


@pytest.mark.parametrize("case", CASES)
def test_rows_that_are_dealt_to_equal_clients(case):
    name, estimator, other = CASES[case]
    x, y = data_of(name)
    whole = len(y) // 5 * 5
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        estimator.fit(x[:whole], y[:whole])
    other.fit(x[:whole], y[:whole])
    assert error_of(estimator, other) < 1e-4
    np.testing.assert_allclose(estimator.intercept_, other.intercept_, rtol=1e-3, atol=1e-4)
    assert (estimator.predict(x) == other.predict(x)).all() or np.allclose(estimator.predict(x), other.predict(x))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighting", ["rows", "clients"])
def test_sites_that_differ_in_size_and_in_their_rows(case, weighting):
    name, estimator, other = CASES[case]
    x, y = data_of(name)
    site = sites_by_feature(x)
    sizes = np.bincount(site)
    weight = None if weighting == "rows" else (len(y) / (len(sizes) * sizes))[site]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        estimator.set_params(weighting=weighting).fit(x, y, groups=site)
    other.fit(x, y, sample_weight=weight)
    estimator.set_params(weighting="rows")
    assert error_of(estimator, other) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 16.0])
def test_digits_by_softmax(scale):
    x, y = datasets.load_digits(return_X_y=True)
    fitted = FederatedLogisticRegression().fit(x / scale, y, groups=np.arange(len(y)) // 300)
    other = LogisticRegression(solver="newton-cg", tol=1e-8, max_iter=1000).fit(x / scale, y)
    assert error_of(fitted, other) < 1e-4


def test_columns_on_any_scale_and_columns_that_depend_on_each_other():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(80, 4))
    plain[:, 3] = 7.0
    scale = np.array([1e-6, 1.0, 1e6, 1.0])
    x = plain * scale + [0.0, 1e5, 3.0, 0.0]
    y = plain[:, 0] - x[:, 1] + plain[:, 2] + 0.1 * rng.normal(size=80)
    fitted, other = FederatedLinearRegression().fit(x, y), LinearRegression().fit(plain, y)
    np.testing.assert_allclose(fitted.coef_ * scale, other.coef_, rtol=1e-4)
    twice = np.hstack([x, x])
    np.testing.assert_allclose(
        FederatedLinearRegression().fit(twice, y).predict(twice), other.predict(plain), rtol=1e-4
    )


@pytest.mark.parametrize("estimator", [FederatedLinearRegression, FederatedLogisticRegression, FederatedLinearSVC])
def test_without_an_intercept(estimator):
    name = "diabetes" if estimator is FederatedLinearRegression else "breast_cancer"
    x, y = data_of(name)
    like = {"FederatedLinearRegression": LinearRegression, "FederatedLinearSVC": LinearSVC}
    settings = {} if estimator is FederatedLinearRegression else {"tol": 1e-10, "max_iter": 10_000}
    if estimator is FederatedLinearSVC:
        settings["dual"] = False
    other = like.get(estimator.__name__, LogisticRegression)(fit_intercept=False, **settings).fit(x, y)
    fitted = estimator(fit_intercept=False).fit(x, y)
    assert error_of(fitted, other) < 1e-4
    assert not np.any(fitted.intercept_)
