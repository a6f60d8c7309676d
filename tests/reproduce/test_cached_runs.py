"""Finished runs on disk."""

import numpy as np
import pytest

from asyncfed import presets
from asyncfed.core.errors import JournalError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.reproduce.cached_runs import RunCache, columns_of, cost, read_cached_run, run_key, write_columns
from asyncfed.runs.simulate import simulate

EXPERIMENT = presets.regression(rounds=3, fraction=0.2)


def test_the_name_of_a_run_follows_what_is_run_and_what_is_measured():
    other_seed = replace(EXPERIMENT, seed=1)
    other_measure = replace(EXPERIMENT, evaluation=replace(EXPERIMENT.evaluation, every=2))
    assert run_key(EXPERIMENT) == run_key(presets.regression(rounds=3, fraction=0.2))
    assert len({run_key(EXPERIMENT), run_key(other_seed), run_key(other_measure)}) == 3


def test_another_version_of_asyncfed_does_not_reuse_runs(monkeypatch):
    before = run_key(EXPERIMENT)
    monkeypatch.setattr("asyncfed.reproduce.cached_runs.__version__", "0.0.0")
    assert run_key(EXPERIMENT) != before


def test_a_run_is_read_as_it_was_written(tmp_path):
    done = simulate(EXPERIMENT, threads=1)
    write_columns(columns_of(done), tmp_path / "run.npz")
    outcome, params = read_cached_run(tmp_path / "run.npz")
    assert (outcome.verdict, outcome.reason, outcome.seed) == (done.verdict, done.reason, 0)
    assert outcome.sha256 == done.sha256
    assert np.array_equal(params, done.params)
    assert np.array_equal(outcome.participation, done.participation())
    for columns, kept in ((done.evaluations, outcome.evaluations), (done.rounds, outcome.rounds)):
        assert columns.keys() == kept.keys()
        assert all(np.array_equal(columns[name], kept[name]) for name in columns)
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


def test_a_run_that_diverged_is_kept_as_such(tmp_path):
    wild = presets.regression(strategy="afl_delta_sum", rounds=60, fraction=0.9, delays=presets.delays_named("none"))
    write_columns(columns_of(simulate(wild, threads=1)), tmp_path / "run.npz")
    assert read_cached_run(tmp_path / "run.npz").outcome.verdict == "diverged"


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path):
    cache = RunCache(tmp_path)
    cache.path(EXPERIMENT).write_bytes(b"not a run")
    with pytest.raises(JournalError, match=r"cannot be read.*Delete it"):
        cache[EXPERIMENT]


def test_the_cost_of_a_run_goes_with_rounds_clients_and_epochs():
    assert cost(EXPERIMENT) == 3 * 2
    assert cost(replace(EXPERIMENT, budget=Budget(rounds=30))) == 30 * 2
    assert cost(presets.svm(rounds=10, fraction=0.5, strategy="sync")) == 10 * 5 * 2
