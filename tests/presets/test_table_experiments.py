"""With nothing but data, a run ends when it is done, at the model that scikit-learn finds on the pooled rows."""

import csv

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.presets import prepare_table
from asyncfed.presets.table_defaults import BATCH_SIZE


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """Four shops that differ in size, in their customers, and in how much they sell anyway."""
    rng = np.random.default_rng(5)
    shop = np.repeat(np.arange(4), [300, 150, 90, 60])
    x = rng.normal(size=(600, 4)) * [1.0, 30.0, 0.01, 1.0] + shop[:, None]
    margin = x @ [0.5, 0.02, 20.0, -0.3] + 0.3 * shop - 0.5
    sold = margin + rng.normal(size=600)
    left = rng.random(600) < 1 / (1 + np.exp(-margin))
    path = tmp_path_factory.mktemp("table") / "shops.csv"
    with path.open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["shop", "a", "b", "c", "d", "sold", "left", "flag"])
        for s, row, y, gone in zip(shop, x, sold, left, strict=True):
            rows.writerow([f"shop{s}", *row, y, "yes" if gone else "no", int(gone)])
    return str(path)


def prepare(shops, target, **how):
    others = [name for name in ("sold", "left", "flag") if name != target]
    return prepare_table(shops, target=target, client_column="shop", settings={"data.ignore": others}, **how)


def pooled_model(loss, clients):
    """What scikit-learn finds on all rows, every client counting the same."""
    from sklearn.linear_model import LogisticRegression, Ridge

    model = Ridge(alpha=1.0) if loss == "least_squares" else LogisticRegression(C=1.0, tol=1e-8, max_iter=1000)
    sizes = np.diff(clients.offsets)
    model.fit(clients.x, clients.y, sample_weight=np.repeat(sizes.mean() / sizes, sizes))
    return np.append(model.coef_, model.intercept_)


@pytest.mark.parametrize(("target", "loss"), [("sold", "least_squares"), ("left", "logistic"), ("flag", "logistic")])
def test_the_default_run_reaches_the_pooled_model(shops, target, loss):
    experiment, data, problem = prepare(shops, target)
    assert experiment.model.loss == loss
    assert any(note.startswith("problem: ") for note in data.notes)
    run = af.run(experiment, problem=problem)
    assert run.reason.startswith("converged: objective improved by less than")
    pooled = pooled_model(loss, data.clients)
    assert run.final["test_loss"] < 1.01 * problem.evaluate(pooled)["test_loss"]
    assert run.final["objective"] < 1.001 * problem.evaluate(problem.optimum())["objective"]


def test_settings_follow_from_the_data(shops):
    experiment, data, _ = prepare(shops, "sold")
    rows = len(data.clients.y)
    assert experiment.model.l2 == 1 / rows
    assert experiment.strategy.concurrency == 2
    assert 4 <= experiment.strategy.work.steps <= 32
    assert experiment.strategy.work.batch_size == BATCH_SIZE
    assert experiment.delays.steps == experiment.strategy.work.steps  # delays are those of a ticket
    largest = max(np.linalg.eigvalsh(_gram(data, client)).max() for client in range(4))
    rate = experiment.strategy.work.learning_rate
    assert 0.3 / largest < rate <= 0.5 / largest + 1e-12
    assert experiment.stopping.overfit_metric == "validation_loss"


def _gram(data, client):
    rows = slice(data.clients.offsets[client], data.clients.offsets[client + 1])
    wide = np.column_stack([data.clients.x[rows], np.ones(rows.stop - rows.start)])
    return wide.T @ wide / len(wide)


def test_what_is_set_has_the_last_word(shops):
    settings = {"model.l2": 0.5, "strategy.mixing": 0.9, "evaluation.every": 7, "stopping.patience": 3}
    ignore = {"data.ignore": ["left", "flag"]}
    experiment = af.presets.table(shops, target="sold", client_column="shop", rounds=9, settings={**settings, **ignore})
    assert (experiment.model.l2, experiment.strategy.mixing, experiment.evaluation.every) == (0.5, 0.9, 7)
    assert (experiment.stopping.patience, experiment.stopping.keep) == (3, "best")
    assert experiment.budget.rounds == 9


def test_without_validation_rows_only_convergence_ends_a_run(shops):
    ignore = {"data.ignore": ["left", "flag"], "holdout.validation": 0.0}
    experiment = af.presets.table(shops, target="sold", client_column="shop", settings=ignore)
    assert experiment.stopping.overfit_metric is None
    assert af.run(experiment).reason.startswith("converged")


@pytest.mark.slow
def test_the_hinge_gets_falling_steps(shops):
    experiment, _, problem = prepare(shops, "left", problem="svm")
    assert experiment.strategy.schedule.over == "round"
    run = af.run(experiment, problem=problem)
    assert run.reason.startswith("converged")
    assert run.final["test_accuracy"] > 0.7


def test_bad_choices_are_refused(shops):
    with pytest.raises(ConfigError, match=r"fraction is 1\.5; it must be above 0 and at most 1"):
        prepare(shops, "sold", fraction=1.5)
    with pytest.raises(ConfigError, match=r'There is no problem "rigde". Did you mean "ridge"'):
        prepare(shops, "sold", problem="rigde")


def test_several_classes_are_learnt_by_softmax(tmp_path):
    rng = np.random.default_rng(0)
    kinds = np.array(["setosa", "versicolor", "virginica"])
    number = rng.integers(0, 3, 120)
    rows = [f"{rng.normal(2.0 * k):.3f},{rng.normal(-k):.3f},{kinds[k]},{i % 4}" for i, k in enumerate(number)]
    (tmp_path / "some.csv").write_text("\n".join(["length,width,species,site", *rows]))
    prepared = prepare_table(str(tmp_path / "some.csv"), target="species", client_column="site", problem="softmax")
    assert any("setosa" in note and "virginica" in note for note in prepared.data.notes)
    run = af.run(prepared.experiment, problem=prepared.problem)
    assert run.evaluations["objective"][-1] < 1.01 * prepared.problem.evaluate(prepared.problem.optimum())["objective"]
    assert run.evaluations["test_accuracy"][-1] > 0.6
