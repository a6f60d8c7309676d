"""Estimators inside scikit-learn's own tools, their strategies and delays, and what they say when they fall short."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import asyncfed as af
import sklearn
from asyncfed.core.errors import ConfigError, DataError
from asyncfed.sklearn import FederatedLogisticRegression, FederatedRidge, federated_fit


@pytest.fixture
def table():
    x, y = make_regression(60, 4, noise=5.0, random_state=0)
    return pd.DataFrame(x, columns=list("abcd")), y, np.repeat(["north", "south", "west"], 20)


def test_a_data_frame_and_sites_by_name(table):
    x, y, site = table
    model = FederatedRidge().fit(x, y, groups=site)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.sites_.tolist() == ["north", "south", "west"]
    assert isinstance(model.run_, af.Run)
    assert model.run_.participation().tolist() != [0, 0, 0]
    assert model.n_iter_ == sum(int(run.evaluations["round"][-1]) for run in model.runs_)
    assert model.optimality_ <= model.tol
    np.testing.assert_allclose(FederatedRidge().fit(x, y, groups=pd.Series(site)).coef_, model.coef_)


def test_pipelines_searches_and_cross_validation_without_routing(table):
    x, y, site = table
    pipeline = make_pipeline(StandardScaler(), FederatedRidge())
    pipeline.fit(x, y, federatedridge__groups=site)
    search = GridSearchCV(pipeline, {"federatedridge__alpha": [0.1, 100.0]}, cv=3)
    search.fit(x, y, federatedridge__groups=site)
    assert search.best_params_ == {"federatedridge__alpha": 0.1}
    scores = cross_val_score(FederatedRidge(), x, y, params={"groups": site}, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(Ridge(), x, y, cv=3), rtol=1e-4)


def test_groups_are_routed(table):
    x, y, site = table
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = FederatedRidge().set_fit_request(groups=True)
        scores = cross_val_score(estimator, x, y, params={"groups": site}, cv=GroupKFold(3))
        search = GridSearchCV(make_pipeline(StandardScaler(), estimator), {"federatedridge__alpha": [0.1, 100.0]}, cv=3)
        search.fit(x, y, groups=site)
    assert len(scores) == 3
    assert search.best_estimator_[-1].sites_.tolist() == ["north", "south", "west"]


def test_a_pickle_holds_the_model_and_not_the_runs(table):
    x, y, site = table
    model = FederatedRidge(alpha=2.0).fit(x, y, groups=site)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(x), model.predict(x))
    assert not hasattr(again, "run_")
    assert not hasattr(again, "runs_")
    assert hasattr(model, "run_")
    assert clone(model).alpha == 2.0


def test_the_seed_decides_and_nothing_else(table):
    x, y, site = table
    one, same, other = (FederatedRidge(random_state=seed).fit(x, y, groups=site).coef_ for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, other, rtol=1e-4)
    FederatedRidge(random_state=None).fit(x, y)
    FederatedRidge(random_state=np.random.RandomState(3)).fit(x, y)


@pytest.mark.parametrize("strategy", ["afl", "sync", "fedavg", af.strategies.FedAvg(cohort_size=3, weighting="equal")])
@pytest.mark.parametrize("delays", ["none", "stragglers", af.delays.Delays()])
def test_exact_strategies_end_at_the_optimum_whatever_the_delays(table, strategy, delays):
    x, y, site = table
    if not isinstance(strategy, str):
        strategy = af.replace(strategy, work=af.Work(epochs=1, batch_size=20, learning_rate=0.5))
    model = FederatedRidge(strategy=strategy, delays=delays).fit(x, y, groups=site)
    np.testing.assert_allclose(model.coef_, Ridge().fit(x, y).coef_, rtol=1e-4)


def test_a_strategy_that_stops_short_says_so(table):
    x, y, site = table
    y = y + 100.0 * (site == "north") * x["a"]
    with pytest.warns(ConvergenceWarning, match="came no nearer"):
        FederatedRidge(strategy="fedasync").fit(x, y, groups=site)
    with pytest.warns(ConvergenceWarning, match="All 2 rounds were spent"):
        FederatedRidge(max_rounds=2).fit(x, y, groups=site)
    labels = np.where(y > 0, "high", "low")
    with pytest.warns(ConvergenceWarning):
        FederatedLogisticRegression(strategy="fedbuff", max_rounds=600).fit(x, labels, groups=site)


def test_mini_batches_train_too(table):
    x, y, site = table
    strategy = af.strategies.FedAsync(concurrency=2, work=af.Work(batch_size=5, learning_rate=0.05))
    with pytest.warns(ConvergenceWarning):
        model = FederatedRidge(strategy=strategy, max_rounds=60).fit(x, y, groups=site)
    assert model.score(x, y) > 0.9


def test_models_too_large_for_a_curvature_matrix_are_fitted_by_scaled_steps(monkeypatch):
    monkeypatch.setattr(federated_fit, "_MOST_PARAMS", 3)
    x, y = make_classification(90, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=1)
    model = FederatedLogisticRegression(C=0.1, tol=1e-7).fit(x, y)
    other = LogisticRegression(C=0.1, tol=1e-10, max_iter=1000).fit(x, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict_log_proba(x), other.predict_log_proba(x), atol=1e-3)


def test_wrong_settings_and_groups_are_refused(table):
    x, y, site = table
    for settings in ({"max_rounds": 0}, {"tol": 0.0}, {"num_clients": 0}, {"weighting": "sites"}, {"alpha": -1.0}):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            FederatedRidge(**settings).fit(x, y)
    with pytest.raises(ConfigError, match="afl"):
        FederatedRidge(strategy="alf").fit(x, y)
    with pytest.raises(ConfigError, match="C is 0"):
        FederatedLogisticRegression(C=0).fit(x, y > 0)
    with pytest.raises(DataError, match="one site for each of the 60 rows"):
        FederatedRidge().fit(x, y, groups=site[:-1])
    with pytest.raises(DataError, match="no site for 1 of 60 rows"):
        FederatedRidge().fit(x, y, groups=[None, *site[1:]])


def test_without_scikit_learn_it_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None\nimport asyncfed.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'asyncfed[sklearn]'" in done.stderr
