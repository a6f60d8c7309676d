"""What is sent of a problem to another machine, and what is refused there."""

import pickle

import pytest

from asyncfed.errors import ConfigError
from asyncfed.runs import problem_source


def test_a_described_problem_is_made_where_it_is_loaded(small, tmp_path, monkeypatch):
    problem = small().problem()
    source = problem_source.problem_source(problem, small())
    assert len(pickle.dumps(source)) < 3_000  # no rows
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(pickle.dumps(source)).load().fingerprint() == problem.fingerprint()
    assert source._replace(folder="/no/such/folder").load().fingerprint() == problem.fingerprint()


def test_other_data_and_other_arithmetic_are_refused(small):
    source = problem_source.problem_source(small().problem(), small())
    with pytest.raises(ConfigError, match="data or loss are others here"):
        source._replace(experiment=small(seed=1)).load()
    with pytest.raises(ConfigError, match=r"one step of training gives other bytes .* leave this machine out"):
        source._replace(probe="").load()


def test_a_problem_in_memory_is_pickled_up_to_a_limit(small, monkeypatch):
    problem = small().problem()
    assert problem_source.problem_source(problem, None).load().fingerprint() == problem.fingerprint()
    monkeypatch.setattr(problem_source, "LARGEST_PICKLED", 100)
    with pytest.raises(ConfigError, match=r"bytes when pickled; at most 100 .* Describe its data"):
        problem_source.problem_source(problem, None)
    problem.clients = lambda: None
    with pytest.raises(ConfigError, match="Define its functions at the top of a module"):
        problem_source.problem_source(problem, None)
