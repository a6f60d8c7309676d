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
        "split": af.data.QuantileDirichlet(concentration=0.3, min_size=4),
        "holdout": af.data.Holdout(),
        "strategy": af.strategies.FedAsync(concurrency=5, work=af.Work(learning_rate=0.02)),
        "delays": af.delays.stragglers(),
        **changes,
    }
    return af.Experiment(**settings)


def make_short(monkeypatch):
    """A search of a few settings only, for tests that look at something else than what it finds."""
    for name, value in {
        "BATCH": 3,
        "GENERATIONS": (None, 1),
        "REFINED": 1,
        "REFINEMENTS": 1,
        "COMPLETED": 1,
        "SCREENED": 1,
    }.items():
        monkeypatch.setattr(f"asyncfed.advice.search.{name}", value)
    monkeypatch.setattr("asyncfed.advice.race.RACE", ((3, 2), (2, 3)))


def small_search(out_dir, **settings):
    """A short search on the small problem."""
    experiment = small_experiment()
    usual = {"strategies": ["fedasync"], "seeds": 3, "workers": 1, "budget": 15.0}
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_short(monkeypatch)
        return recommend(experiment, experiment.problem(), out_dir, **(usual | settings))


@pytest.fixture(scope="session")
def found(tmp_path_factory):
    """A recommendation on the small problem, and the folder of its runs."""
    folder = tmp_path_factory.mktemp("advice")
    return small_search(folder), folder
