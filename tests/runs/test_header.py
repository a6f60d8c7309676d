"""What a run's file says about itself, and whether it is about this experiment and this problem."""

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.runs import header
from asyncfed.runs.header import check_same_problem, new_header, same_experiment


def test_all_runs_have_the_same_facts_and_live_ones_one_more(small):
    problem = small().problem()
    simulated = new_header(small(), problem)
    live = new_header(small(), problem, live={"absent": []})
    assert set(live) - set(simulated) == {"live"}
    assert (simulated["asyncfed"], simulated["num_clients"]) == (af.__version__, 4)
    assert (simulated["own_problem"], simulated["own_delays"]) == (False, False)
    assert simulated["verdict"] == "interrupted"
    assert same_experiment(simulated, None, None) == small()


def test_a_part_that_cannot_be_written_is_named_before_anything_is_done(small, tmp_path):
    class Odd:
        def check(self, num_clients):
            pass

    with pytest.raises(ConfigError, match=r"cannot be written down.*`delays=` and `problem=`"):
        af.run(small(strategy=Odd()), out=tmp_path / "run.sqlite")
    assert not (tmp_path / "run.sqlite").exists()


def test_another_problem_is_refused(small):
    header = new_header(small(), small().problem())
    check_same_problem(header, small().problem(), "x")
    with pytest.raises(JournalError, match=r"x was run on other data or another loss.*nothing was changed"):
        check_same_problem(header, small(seed=5).problem(), "x")


def test_another_experiment_is_refused_but_not_another_name(small):
    header = new_header(small(), small().problem())
    assert same_experiment(header, small(name="renamed"), None).name == "renamed"
    with pytest.raises(JournalError, match="seed: 0 -> 5"):
        same_experiment(header, small(seed=5), None)


class Named:
    """A problem with clients of these names."""

    def __init__(self, problem, names):
        self._problem, self.client_names = problem, names
        self.num_clients = len(names) or problem.num_clients

    def __getattr__(self, name):
        return getattr(self._problem, name)


def test_names_of_clients_are_in_the_header_where_they_are_more_than_numbers(small, monkeypatch):
    problem = small().problem()
    assert "client_names" not in new_header(small(), problem)
    assert "client_names" not in new_header(small(), Named(problem, ("0", "1", "2", "3")))
    assert new_header(small(), Named(problem, ("a", "b" * 300)))["client_names"] == ["a", "b" * 200]
    monkeypatch.setattr(header, "MOST_NAMED", 1)
    assert "client_names" not in new_header(small(), Named(problem, ("a", "b")))


def test_a_private_run_names_nobody(small):
    experiment = small(strategy=af.strategies.FedBuff(concurrency=3, buffer_size=2))
    private = af.replace(experiment, privacy=af.privacy.Local(epsilon=8.0))
    assert "client_names" in new_header(experiment, Named(experiment.problem(), ("a", "b", "c", "d")))
    assert "client_names" not in new_header(private, Named(private.problem(), ("a", "b", "c", "d")))
