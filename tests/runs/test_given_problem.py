"""A problem of the caller's own, and data that were prepared already."""

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.runs.given_problem import choose_problem


def test_without_one_it_is_the_experiments_own(small):
    described = small().problem().fingerprint()
    assert choose_problem(small(), None).fingerprint() == described
    assert choose_problem(small(), None, small().prepare_data()).fingerprint() == described


def test_it_must_have_as_many_clients_as_the_experiment_says(small):
    other = small(num_clients=3).problem()
    with pytest.raises(
        ConfigError, match=r"num_clients = 4, but the problem given has 3 clients.*leave num_clients out"
    ):
        af.run(small(), problem=other)
    assert af.run(small(num_clients=None), problem=other).header["num_clients"] == 3


def test_a_problem_and_prepared_data_are_one_too_many(small):
    with pytest.raises(ConfigError, match="problem and prepared are both given"):
        af.run(small(), problem=small().problem(), prepared=small().prepare_data())


def test_prepared_data_are_not_prepared_again(small, monkeypatch):
    experiment, prepared = small(), small().prepare_data()
    whole = af.run(experiment)
    monkeypatch.setattr(af.Experiment, "prepare_data", lambda self: pytest.fail("prepared again"))
    run = af.run(experiment, prepared=prepared)
    assert run.sha256 == whole.sha256
    assert run.header["own_problem"] is False


def test_the_file_says_whose_problem_it_was(small, tmp_path):
    path, other = tmp_path / "run.sqlite", small(seed=8).problem()
    run = af.run(small(), problem=other, out=path)
    assert run.header["own_problem"] is True
    assert run.problem is other
    rows = run.clients["rows"].tolist()
    run.journal.close()
    loaded = af.load(path)
    for use in (lambda: loaded.problem, loaded.certificate, loaded.bias, lambda: loaded.clients):
        with pytest.raises(JournalError, match=r"a problem of your own, which its file cannot hold.*problem=\.\.\."):
            use()
    assert loaded.known_clients is None
    assert af.load(path, problem=other).clients["rows"].tolist() == rows


def test_a_file_of_an_earlier_version_does_not_say_and_is_compared_all_the_same(small, tmp_path):
    path = tmp_path / "run.sqlite"
    af.run(small(), problem=small(seed=8).problem(), out=path).journal.close()
    old = af.load(path)
    del old.header["own_problem"]
    with pytest.raises(JournalError, match="data that its experiment does not describe, or that have changed since"):
        _ = old.problem
