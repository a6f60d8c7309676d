"""What is measured of a model, and that what a measurement draws depends on the seed and the model's version alone."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed import presets
from asyncfed.core.record import replace
from asyncfed.engine.evaluation import Evaluation, Evaluator
from asyncfed.kernels.losses import LOSS_CODES, loss_values

BATCH = 32


def scripts(rounds=6, task="regression", **changes):
    """A short experiment in the published reading."""
    experiment = presets.preset(task)(strategy="published", reading="published", rounds=rounds, seed=3)
    return replace(experiment, **changes)


def first_client_losses(run):
    return dict(zip(run.evaluations["updates"].tolist(), run.evaluations["first_client_loss"].tolist(), strict=True))


@pytest.mark.parametrize("task", ["regression", "svm"])
def test_the_published_loss_is_the_mean_over_reshuffled_batches(task):
    """Over many measurements of one model: its values are those of a short batch drawn at random, counted as full."""
    experiment = scripts(task=task)
    problem = experiment.problem()
    rows = int(problem.num_examples[0])
    assert rows % BATCH not in (0, BATCH - 1)
    params = problem.init(0, how="torch")
    margins = problem.x[:rows] @ params[:-1] + params[-1]
    losses = loss_values(LOSS_CODES[experiment.model.loss], margins, problem.y[:rows])
    evaluator = Evaluator(problem, Evaluation(distance=False), threads=1, seed=0)
    measured = [evaluator.measure(params, version)["first_client_loss"] for version in range(300)]

    rng = np.random.default_rng(0)
    batches = np.split(np.arange(rows), range(BATCH, rows, BATCH))
    expected = []
    for _ in range(3000):
        shuffled = rng.permutation(losses)
        expected.append(np.mean([shuffled[batch].mean() for batch in batches]))
    assert np.mean(measured) == pytest.approx(losses.mean(), rel=0.02)
    assert np.std(measured) == pytest.approx(np.std(expected), rel=0.15)
    assert evaluator.measure(params, 7)["first_client_loss"] == measured[7]
    other = Evaluator(problem, Evaluation(distance=False), threads=1, seed=1)
    assert other.measure(params, 7)["first_client_loss"] != measured[7]


def test_the_other_measurements_draw_nothing():
    problem = scripts().problem()
    params = problem.init(0, how="torch")
    evaluator = Evaluator(problem, Evaluation(distance=False), threads=1, seed=0)
    one, other = evaluator.measure(params, 1), evaluator.measure(params, 2)
    assert one.pop("first_client_loss") != other.pop("first_client_loss")
    assert one == other


def test_batches_in_stored_order_unless_the_model_says_otherwise():
    for experiment in (presets.regression(), presets.svm(), af.Experiment()):
        assert experiment.model.first_client_batches is None
        assert experiment.problem().random_measurements(np.zeros(11), 1) == {}


def test_a_model_is_measured_alike_however_often_others_are():
    each, rarely = scripts(), scripts(evaluation=Evaluation(every=3, distance=False))
    often, seldom = first_client_losses(af.run(each)), first_client_losses(af.run(rarely))
    assert len(seldom) < len(often)
    assert seldom.items() <= often.items()


def test_a_published_run_verifies_and_resumes_to_the_same_losses(tmp_path):
    whole = af.run(scripts(rounds=12), out=tmp_path / "whole.sqlite")
    assert af.verify(tmp_path / "whole.sqlite").ok

    class Stop(Exception):
        pass

    def stop(progress):
        if progress.rounds >= 2:
            raise Stop

    with pytest.raises(Stop):
        af.run(scripts(rounds=400), out=tmp_path / "cut.sqlite", watch=stop, checkpoint_seconds=0)
    resumed = first_client_losses(af.resume(tmp_path / "cut.sqlite"))
    assert first_client_losses(whole).items() <= resumed.items()


def test_workers_draw_the_same():
    problem = scripts().problem()
    with af.Workers(problem, 1) as pooled:
        assert pooled.random_measurements(np.zeros(11), 5) == problem.random_measurements(np.zeros(11), 5) != {}
