"""A small problem, and one search over it that several tests look at."""

import pytest

import asyncfed as af
from asyncfed.advice.advisor import recommend


def small_experiment(**changes):
    """Ten clients, two of them ten times slower."""
    settings = {
        "name": "small",
        "num_clients": 10,
        "data": af.data.PaperRegression(num_samples=400, num_features=3),
        "holdout": af.data.Holdout(),
        "strategy": af.strategies.FedAsync(concurrency=5, work=af.Work(learning_rate=0.005)),
        "delays": af.delays.stragglers(),
        **changes,
    }
    return af.Experiment(**settings)


def small_search(out_dir, **settings):
    experiment = small_experiment()
    usual = {"strategies": ["fedasync"], "seeds": 4, "workers": 1, "budget": 25.0}
    return recommend(experiment, experiment.problem(), out_dir, **(usual | settings))


@pytest.fixture(scope="session")
def found(tmp_path_factory):
    """A recommendation on the small problem, and the folder of its runs."""
    folder = tmp_path_factory.mktemp("advice")
    return small_search(folder), folder
