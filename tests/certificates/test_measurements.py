"""What a run did, in the quantities that theorems bound."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.certificates import measurements
from asyncfed.certificates.certificate import certify, constants_of
from asyncfed.certificates.settings import setting_of


@pytest.fixture
def certified(small_experiment):
    return certify(small_experiment("afl_mixing", max_staleness=9), seeds=2)


def test_distances_and_gaps_are_those_of_the_models(certified):
    run, problem = certified.runs[0], certified.experiment.problem()
    best = problem.optimum()
    start = problem.init(certified.experiment.seed, how=certified.experiment.init)
    assert run.trajectory.distances[0] == pytest.approx(np.linalg.norm(start - best))
    assert run.gap[0] == pytest.approx(problem.client_losses(start).mean() - problem.client_losses(best).mean())
    assert run.versions[-1] == len(run.trajectory.steps)
    assert [one.seed for one in certified.runs] == [0, 1]


def test_the_bound_along_the_path_lies_above_its_own_run_only_by_what_it_must(certified):
    distances = certified.runs[0].trajectory.distances
    assert certified.path.distance[0] == pytest.approx(distances[0])
    assert (certified.path.distance >= distances - 1e-9).all()
    assert certified.path.gap == pytest.approx(
        0.5 * certified.constants.objective_smoothness * certified.path.distance**2
    )


def test_a_run_too_long_for_exact_maps_has_no_bound_along_its_path(small_experiment, monkeypatch):
    monkeypatch.setattr(measurements, "MOST_MULTIPLICATIONS", 1.0)
    assert certify(small_experiment("afl_mixing", max_staleness=9), seeds=1).path is None


def test_the_averaged_model_is_that_of_the_first_theorem_that_bounds_one(small_experiment):
    experiment = small_experiment("sync")
    slow = af.replace(experiment.strategy.work, learning_rate=1e-5)
    experiment = af.replace(experiment, strategy=af.replace(experiment.strategy, work=slow))
    problem = experiment.problem()
    found, setting = constants_of(experiment, problem), setting_of(experiment, problem.num_examples)
    ratio = measurements.averaging_ratio(setting, found)
    assert ratio == pytest.approx(1 - found.strong_convexity * setting.effective_step / 2)
    run = certify(experiment, seeds=1).runs[0]
    assert run.averaged_gap[0] == pytest.approx(run.gap[0])
    assert (run.averaged_gap[1:] > run.gap[1:]).all(), "the average lags behind a model that improves"


def test_rules_without_an_averaged_model_have_none(certified):
    assert np.isnan(certified.runs[0].averaged_gap).all()


def test_the_drift_bound_needs_runs_and_smoothness(small_experiment, certified):
    assert certified.drift_bound.shape == (len(certified.runs[0].gap) - 1,)
    assert certify(small_experiment(), seeds=0).drift_bound is None
