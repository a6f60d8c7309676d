"""One simulated run of a search, measured as often as needed."""

import numpy as np
import pytest
from tests.advice.conftest import small_experiment

import asyncfed as af
from asyncfed.advice.trial_run import GROWTH, metric_of, simulate_trial


def test_the_curve_is_that_of_the_run_itself():
    experiment = small_experiment(budget=af.Budget(updates=60))
    problem = experiment.problem()
    trial = simulate_trial(experiment, problem)
    every = af.Evaluation(every=1, unit="update", distance=False)
    run = af.run(af.replace(experiment, evaluation=every), problem=problem)
    kept = np.isin(run.evaluations["updates"], trial.updates)
    assert trial.updates == tuple(run.evaluations["updates"][kept].tolist())
    assert trial.elapsed == tuple(run.evaluations["elapsed"][kept].tolist())
    assert np.allclose(trial.known_losses, run.evaluations["validation_loss"][kept], rtol=1e-12)
    assert trial.total_energy == run.rounds["energy"][-1]
    assert trial.jain_index == pytest.approx(run.rounds["jain_index"][-1])
    assert trial.worst_test_accuracy is None


def test_costs_are_known_to_a_few_percent_whether_a_run_is_short_or_long():
    experiment = small_experiment(budget=af.Budget(updates=600))
    updates = np.array(simulate_trial(experiment, experiment.problem()).updates)
    assert updates[:20].tolist() == list(range(20))
    assert (updates[1:] <= np.maximum(updates[:-1] + 1, np.ceil(updates[:-1] * GROWTH))).all()
    assert updates[-1] == 600
    assert len(updates) < 150


def test_without_held_out_rows_the_objective_counts():
    experiment = small_experiment(holdout=None, budget=af.Budget(updates=5))
    problem = experiment.problem()
    assert metric_of(problem) == "objective"
    trial = simulate_trial(experiment, problem)
    assert trial.loss[0] == problem.evaluate(problem.init(0))["objective"]
    assert trial.worst_loss == trial.worst_test_loss


def test_a_run_that_diverges_is_a_result():
    wild = small_experiment(
        strategy=af.strategies.FedAsync(work=af.Work(learning_rate=10.0)), budget=af.Budget(updates=50)
    )
    assert simulate_trial(wild, wild.problem()).verdict == "diverged"
