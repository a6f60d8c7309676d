import numpy as np
import pytest

import asyncfed as af
from asyncfed.engine.trajectory import PathObserver, replay_trajectory
from asyncfed.runs.simulate import simulate
from asyncfed.store.schema import MERGE


@pytest.fixture(scope="module")
def followed():
    experiment = af.presets.regression(rounds=6, strategy="afl_mixing")
    experiment = af.replace(experiment, evaluation=af.Evaluation(unit="update"))
    run, problem = af.run(experiment), experiment.problem()
    path = replay_trajectory(
        problem, experiment.plan(1), run.journal, problem.optimum(), 0.9, lambda version: version in (0, 3)
    )
    return run, problem, path


def test_distances_are_those_the_run_measured(followed):
    run, _, path = followed
    assert path.distances.tolist() == run.evaluations["distance"].tolist()


def test_every_merge_is_there_once_with_its_base(followed):
    run, _, path = followed
    merges = [event for event in run.journal.event_rows() if event.kind == MERGE]
    assert [step.tickets[0].ticket for step in path.steps] == [merge.ticket for merge in merges]
    assert all(step.keep == 0.5 and step.of == "model" for step in path.steps)
    assert path.largest_staleness == run.rounds["staleness_max"].max()


def test_averages_weigh_later_models_more(followed):
    run, problem, path = followed
    experiment = run.experiment
    models = [problem.init(experiment.seed, how="torch")]
    for step in path.steps[:3]:
        k = step.tickets[0]
        trained = problem.local_train(models[k.base_version], k.client, k.work, k.key)
        models.append(0.5 * models[-1] + 0.5 * trained)
    weights = 0.9 ** -np.arange(1.0, 5.0)
    assert path.averages[3] == pytest.approx(weights @ np.array(models) / weights.sum(), rel=1e-12)
    assert path.averages[0] == pytest.approx(models[0])
    assert set(path.averages) == {0, 3}


def test_observing_a_run_gives_the_same_path_as_following_it():
    experiment = af.replace(af.presets.regression(rounds=4), evaluation=af.Evaluation(drift=True))
    problem = experiment.problem()
    observer = PathObserver(experiment.seed, problem.optimum(), 0.9)
    run = simulate(experiment, problem=problem, observer=observer)
    observed = observer.trajectory(run.params)
    measured = set(run.evaluations["version"].tolist())
    followed = replay_trajectory(
        problem, experiment.plan(1), run.journal, problem.optimum(), 0.9, lambda version: version in measured
    )
    assert observed.steps == followed.steps
    assert observed.distances.tobytes() == followed.distances.tobytes()
    assert {t: a.tobytes() for t, a in observed.averages.items()} == {
        t: a.tobytes() for t, a in followed.averages.items()
    }
    assert len(observed.averages) == 5
    assert (run.evaluations["client_drift"][1:] > 0).all(), "the drift is measured beside it"


def test_observing_changes_nothing():
    experiment = af.presets.regression(rounds=3)
    observer = PathObserver(experiment.seed, experiment.problem().optimum())
    assert simulate(experiment, observer=observer).sha256 == simulate(experiment).sha256


def test_the_latest_average_gives_its_shares():
    experiment = af.presets.regression(rounds=2)
    run, problem = af.run(experiment), experiment.problem()
    path = replay_trajectory(problem, experiment.plan(1), run.journal, problem.optimum())
    assert {step.shares for step in path.steps} == {(0.1,)}
    assert path.averages == {}
