"""A client's own model is the common one, trained further where its validation rows say so."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.personalization import STEPS, personalize
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.data import Clients, HeldOut
from asyncfed.strategies import FedAsync

WORK = Work(batch_size=16, learning_rate=0.1)


def federation(laws, rows, seed=0, noise=0.1, parts=("validation", "test")):
    """Clients with laws of their own, and as many held-out rows in each part as they train on."""
    rng = np.random.default_rng(seed)

    def draw():
        xs = [rng.normal(size=(count, 2)) for count in rows]
        return xs, [x @ law + noise * rng.normal(size=len(x)) for x, law in zip(xs, laws, strict=True)]

    train = Clients.from_lists(*draw())
    held_out = {part: Clients.from_lists(*draw()) for part in parts}
    packed = {part: HeldOut(data.x, data.y, data.offsets) for part, data in held_out.items()}
    return af.problems.Linear(train, fit_bias=False, held_out=packed)


EXPERIMENT = af.Experiment(num_clients=3, strategy=FedAsync(work=WORK))


def test_who_differs_gains_and_who_does_not_keeps_the_common_model():
    laws = np.array([[1.0, 0.0], [1.0, 0.0], [-2.0, 3.0]])
    problem = federation(laws, [60, 60, 60])
    found = personalize(EXPERIMENT, problem, laws[0])
    assert found.steps[2] in STEPS
    np.testing.assert_allclose(found.models[2], laws[2], atol=0.1)
    assert (np.abs(found.models[:2] - laws[0]) < 0.1).all()
    common, own = (problem.client_scores(params, "test").loss for params in (laws[0], found.models))
    assert own[2] < 0.1 * common[2]
    assert (own[:2] < 1.1 * common[:2]).all()


def test_a_model_that_does_not_help_is_the_common_one_to_the_last_bit():
    laws = np.array([[1.0, 0.0]] * 3)
    problem = federation(laws, [5, 5, 5], noise=3.0)
    found = personalize(EXPERIMENT, problem, laws[0])
    for client in np.flatnonzero(found.steps == 0):
        np.testing.assert_array_equal(found.models[client], laws[0])
    assert (found.steps == 0).any()


def test_it_is_the_same_every_time_whatever_the_threads():
    problem = federation(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]]), [20, 30, 40])
    once, twice = (personalize(EXPERIMENT, problem, np.zeros(2), threads) for threads in (1, 2))
    np.testing.assert_array_equal(once.models, twice.models)


def test_without_validation_rows_it_says_what_to_do():
    problem = federation(np.array([[1.0, 0.0]]), [10], parts=("test",))
    with pytest.raises(ConfigError, match=r"Hold rows out: \[holdout\] validation = 0.15"):
        personalize(EXPERIMENT, problem, np.zeros(2))


def test_a_run_personalises_and_says_who_gains(small):
    run = af.run(small(holdout=af.data.Holdout(validation=0.3, test=0.3)))
    found = run.personalize()
    assert found.models.shape == (run.problem.num_clients, run.problem.num_params)
    own = run.problem.client_scores(found.models, "test").loss
    np.testing.assert_allclose(found.table["personalized"], own)
    tuned = found.steps > 0
    np.testing.assert_allclose(found.table["personal_gain"][tuned], (found.table["loss"] - own)[tuned])
    assert (found.table["personal_gain"][~tuned] == 0.0).all()
    assert "Personalised, against common: " in " ".join(str(found.table).split())
