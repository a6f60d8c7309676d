"""Simulated runs on disk: named by their content, whole or not at all."""

import pytest
from tests.advice.conftest import small_experiment

import asyncfed as af
from asyncfed.advice.cached_trials import TrialCache, TrialRunner, open_trial_pool, simulate_held

EXPERIMENT = small_experiment(budget=af.Budget(updates=5))


def test_the_name_follows_experiment_data_and_version(tmp_path, monkeypatch):
    cache = TrialCache(tmp_path, "data")
    path = cache.path(EXPERIMENT)
    assert path == cache.path(small_experiment(budget=af.Budget(updates=5)))
    assert path != cache.path(af.replace(EXPERIMENT, seed=1))
    assert path != TrialCache(tmp_path, "other data").path(EXPERIMENT)
    monkeypatch.setattr("asyncfed.advice.cached_trials.__version__", "0.0.0")
    assert path != cache.path(EXPERIMENT)


def test_runs_come_back_in_order_and_are_simulated_once(tmp_path):
    asked = [af.replace(EXPERIMENT, seed=seed) for seed in (3, 1, 3)]
    counts = []
    with open_trial_pool(1, EXPERIMENT.problem()) as pool:
        runner = TrialRunner(TrialCache(tmp_path, ""), pool, 3, lambda done, planned: counts.append((done, planned)))
        first = runner.run(asked)
        before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
        again = TrialRunner(TrialCache(tmp_path, ""), pool, 3).run(asked)
    assert first[0] == first[2] != first[1]
    assert again == first
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    assert len(before) == 2
    assert counts[-1] == (3, 3)


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path):
    cache = TrialCache(tmp_path, "")
    for text in ("{", "{}"):
        cache.path(EXPERIMENT).write_text(text)
        with pytest.raises(af.errors.JournalError, match=r"cannot be read.*Delete it"):
            cache.read(cache.path(EXPERIMENT))


def test_a_process_without_a_problem_says_so():
    with pytest.raises(af.errors.ConfigError, match="was not given a problem"):
        simulate_held(EXPERIMENT)


def test_an_error_names_the_strategy(tmp_path):
    problem = EXPERIMENT.problem()
    wrong = af.replace(EXPERIMENT, strategy=af.strategies.FedAvg(cohort_size=99))
    with open_trial_pool(1, problem) as pool, pytest.raises(af.errors.ConfigError, match=r"while simulating.*fedavg"):
        TrialRunner(TrialCache(tmp_path, ""), pool, 1).run([wrong])
