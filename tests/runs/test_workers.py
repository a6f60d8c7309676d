"""Other processes train to the same bytes."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import Jobs
from asyncfed.testing import check_problem


@pytest.mark.slow
def test_workers_change_nothing(small):
    experiment = small(evaluation=af.Evaluation(drift=True), budget=af.Budget(rounds=6))
    problem = experiment.problem()
    alone = af.run(experiment, problem=problem)
    with af.Workers(problem, 2) as pooled:
        check_problem(pooled)
        together = af.run(experiment, problem=pooled)
    assert together.sha256 == alone.sha256
    assert together.evaluations["client_drift"].tolist() == pytest.approx(
        alone.evaluations["client_drift"].tolist(), nan_ok=True
    )


@pytest.mark.slow
def test_workers_make_corrections_and_count_steps(small):
    problem = small().problem()
    starts, corrections = np.random.default_rng(0).normal(size=(2, 4, problem.num_params)).astype(problem.dtype)
    works = [af.Work(batch_size=2, steps=3), af.Work(batch_size=2), af.Work(steps=9), af.Work(epochs=40, patience=1)]
    jobs = Jobs(starts, [0, 1, 0, 1], works, [5, 6, 7, 8], corrections=corrections)
    with af.Workers(problem, 2) as pooled:
        found = []
        for one in (problem, pooled):
            trained, followed = np.zeros((2, 4), np.int64)
            models = one.local_train_many(jobs._replace(steps_done=trained))
            moments = one.local_path_moments(jobs._replace(steps_done=followed))
            assert np.array_equal(trained, followed)
            assert np.array_equal(trained, moments[0])
            found.append([part.tobytes() for part in (trained, models, *moments)])
    assert trained[0] == 3
    assert found[0] == found[1]


@pytest.mark.slow
def test_params_that_are_shared_are_those_that_are_pickled(small, monkeypatch):
    """With no room for them, with little, and with enough; a block that grew is given back."""
    from asyncfed.runs import shared_rows

    problem, folder = small().problem(), shared_rows._FOLDER
    rng, work = np.random.default_rng(0), af.Work(epochs=40, patience=1)
    calls = [rng.normal(size=(count, problem.num_params)).astype(problem.dtype) for count in (2, 7, 3)]
    before = sorted(folder.iterdir()) if folder.exists() else []
    with af.Workers(problem, 2) as pooled:
        for smallest in (0, 1 << 60, 0):
            monkeypatch.setattr(shared_rows, "SMALLEST", smallest)
            for starts in calls:
                count, kept = len(starts), starts.copy()
                jobs = Jobs(starts, [k % 2 for k in range(count)], [work] * count, list(range(count)))
                ours, theirs = np.zeros((2, count), np.int64)
                trained = pooled.local_train_many(jobs._replace(steps_done=ours))
                assert trained.tobytes() == problem.local_train_many(jobs._replace(steps_done=theirs)).tobytes()
                assert ours.tolist() == theirs.tolist()
                assert np.array_equal(starts, kept)
        assert pooled._shared._blocks
    assert not pooled._shared._blocks
    assert (sorted(folder.iterdir()) if folder.exists() else []) == before


@pytest.mark.slow
def test_clients_are_served_as_without_workers(small):
    experiment = small(holdout=af.data.Holdout(), data=af.data.PaperRegression(num_samples=80))
    problem = replace_loss(experiment).problem()
    alone = af.run(experiment, problem=problem)
    with af.Workers(problem, 2) as pooled:
        assert pooled.parts == problem.parts
        assert pooled.client_names == problem.client_names
        assert pooled.client_optimum(1) is None
        run = af.run(experiment, problem=pooled)
    for name, column in alone.clients.columns.items():  # the pool is gone; models alone are trained in this process
        np.testing.assert_array_equal(run.clients[name], column)
    jobs = Jobs(np.stack([problem.init(0)] * 2), [0, 1], [experiment.strategy.work] * 2, [5, 6])
    for ours, theirs in zip(*(p.local_path_moments(jobs) for p in (pooled, problem)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def replace_loss(experiment):
    """Without a minimiser, so that models alone have to be trained."""
    return af.replace(experiment, model=af.problems.LinearModel(loss="huber_hinge"), data=af.presets.svm().data)


class Speechless(af.problems.Linear):
    """One that does not measure a model on single clients."""

    client_scores = None


@pytest.mark.slow
def test_a_problem_that_cannot_score_clients_says_so_through_workers(small):
    with af.Workers(Speechless(small().clients()), 1) as pooled:
        run = af.run(small(), problem=pooled)
    with pytest.raises(ConfigError, match="Speechless does not measure a model on single clients"):
        _ = run.clients
    assert run.known_clients is None


def test_what_cannot_be_pickled_is_refused(small):
    problem = small().problem()
    problem.clients = lambda: None
    with pytest.raises(ConfigError, match="Define its functions at the top of a module"):
        af.Workers(problem, 2)
    with pytest.raises(ConfigError, match="count is 0"):
        af.Workers(small().problem(), 0)


@pytest.mark.slow
def test_a_convolutional_network_is_trained_to_the_same_bytes_by_other_processes():
    nn = pytest.importorskip("torch", reason="torch is not installed").nn
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(20, 1, 8, 8)).astype("f4"), rng.integers(0, 3, 20)) for _ in range(4)]
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
    problem = af.problems.torch(partial(deepcopy, module), "cross_entropy", rows)
    experiment = af.Experiment(
        num_clients=4, strategy=af.strategies.AFL(concurrency=3, work=af.Work(batch_size=5)), budget=af.Budget(rounds=4)
    )
    alone = af.run(experiment, problem=problem)
    with af.Workers(problem, 2) as pooled:
        assert af.run(experiment, problem=pooled).sha256 == alone.sha256
