"""Linear models on sparse rows: the same numbers as on arrays, and runs that resume, verify and go live."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.testing import check_problem

LOSSES = ("least_squares", "mse", "logistic", "hinge", "squared_hinge", "huber_hinge")
STRATEGY = af.strategies.FedBuff(
    concurrency=3, buffer_size=2, work=af.Work(epochs=2, batch_size=8, learning_rate=0.2, proximal=0.1)
)


def both_kinds(labels=True, dtype="float64", n=(30, 12, 45), d=25, seed=0):
    """The same clients with sparse rows and with arrays."""
    rng = np.random.default_rng(seed)
    xs = [rng.normal(size=(rows, d)) * (rng.random((rows, d)) < 0.2) for rows in n]
    ys = [x @ np.linspace(-1, 1, d) + 0.1 * rng.normal(size=len(x)) for x in xs]
    ys = [np.where(y > 0, 1, -1) for y in ys] if labels else ys
    packed = af.data.Clients.from_lists([sparse.csr_array(x) for x in xs], ys, labels=labels, dtype=dtype)
    return packed, af.data.Clients.from_lists(xs, ys, labels=labels, dtype=dtype)


def both_problems(loss, labels=None, dtype="float64", **settings):
    labels = loss not in ("least_squares", "mse") if labels is None else labels
    return tuple(af.problems.Linear(clients, loss, **settings) for clients in both_kinds(labels, dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("loss", LOSSES)
def test_conforms(loss, dtype):
    check_problem(both_problems(loss, dtype=dtype, l2=0.05, penalize_bias=False)[0])


@pytest.mark.parametrize("fit_bias", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_measures_what_it_does_on_arrays(loss, fit_bias):
    packed, dense = both_problems(loss, l2=0.1, fit_bias=fit_bias)
    point = np.random.default_rng(1).normal(size=packed.num_params)
    close = {"rtol": 1e-12, "atol": 1e-12}
    assert packed.evaluate(point) == pytest.approx(dense.evaluate(point), rel=1e-12)
    np.testing.assert_allclose(packed.client_losses(point), dense.client_losses(point), **close)
    np.testing.assert_allclose(packed.gradient(point, 1), dense.gradient(point, 1), **close)
    np.testing.assert_allclose(packed.client_row_losses(point, 2), dense.client_row_losses(point, 2), **close)
    assert packed.client_loss(point, 2) == pytest.approx(dense.client_loss(point, 2), rel=1e-12)
    own = np.stack([point, -point, 2 * point])
    for models in (point, own):
        one, other = packed.row_losses(models, "training"), dense.row_losses(models, "training")
        np.testing.assert_allclose(one.loss, other.loss, **close)
        scores, expected = packed.client_scores(models, "training"), dense.client_scores(models, "training")
        np.testing.assert_allclose(scores.loss, expected.loss, **close)
    assert packed.random_measurements(point, 3) == dense.random_measurements(point, 3)
    assert packed.fingerprint() != dense.fingerprint()


@pytest.mark.parametrize("loss", ["least_squares", "mse", "logistic", "squared_hinge", "huber_hinge"])
def test_the_optimum_is_that_on_arrays(loss):
    packed, dense = both_problems(loss, l2=0.1)
    np.testing.assert_allclose(packed.optimum(), dense.optimum(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(packed.client_optimum(0), dense.client_optimum(0), rtol=1e-9, atol=1e-9)


def test_an_optimum_of_very_many_columns_is_found_by_products_alone():
    data = af.data.SparseText(num_samples=400, num_features=20_000, words=20)
    clients = data.prepare(af.data.DataRequest(num_clients=4, labels=True)).clients
    problem = af.problems.Linear(clients, "logistic", l2=0.01)
    best = problem.optimum()
    slope = np.mean([problem.gradient(best, client) for client in range(4)], axis=0)
    assert np.linalg.norm(slope) < 1e-9
    assert problem.optimum().shape == (20_001,)


def experiment(**settings):
    return af.Experiment(
        num_clients=3, strategy=STRATEGY, budget=af.Budget(rounds=15), delays=af.delays.stragglers(), **settings
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_experiment_on_sparse_rows_and_on_arrays_agrees_to_rounding(loss):
    packed, dense = both_problems(loss, l2=0.02)
    one, other = (af.run(experiment(), problem=problem) for problem in (packed, dense))
    np.testing.assert_allclose(one.params, other.params, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.evaluations["objective"], other.evaluations["objective"], rtol=1e-12)
    assert one.evaluations["elapsed"].tolist() == other.evaluations["elapsed"].tolist()


SPARSE_TEXT = """
num_clients = 5
[data]
kind = "sparse_text"
num_samples = 200
num_features = 3000
words = 20
[holdout]
[model]
loss = "logistic"
l2 = 0.001
[strategy]
kind = "fedbuff"
concurrency = 3
buffer_size = 2
[strategy.work]
learning_rate = 2.0
[budget]
rounds = 12
"""


def test_a_run_from_toml_is_broken_off_resumed_and_verified_to_the_same_bytes(tmp_path):
    described, path = af.from_toml(SPARSE_TEXT), tmp_path / "run.sqlite"
    whole = af.run(described, threads=2)
    assert whole.evaluations["objective"][-1] < whole.evaluations["objective"][0]
    assert {"validation_loss", "test_accuracy", "distance"} <= set(whole.evaluations)

    def give_up(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.run(described, out=path, watch=give_up, checkpoint_seconds=0.0)
    resumed = af.resume(path)
    assert resumed.sha256 == whole.sha256
    resumed.journal.close()
    assert af.verify(path).ok
    assert af.from_toml(af.to_toml(described)) == described


def test_worker_processes_train_to_the_same_bytes():
    described = af.from_toml(SPARSE_TEXT)
    with af.Workers(described.problem(), 2) as pooled:
        assert af.run(described, problem=pooled).sha256 == af.run(described).sha256


def test_drift_personal_models_and_the_table_of_clients_work():
    run = af.run(af.replace(af.from_toml(SPARSE_TEXT), evaluation=af.Evaluation(drift=True)))
    assert np.isfinite(run.clients["loss"]).all()
    assert run.personalize().models.shape == (5, 3001)


def test_a_certificate_has_the_constants_of_the_same_problem_on_arrays():
    packed, dense = both_problems("logistic", l2=0.1)
    one, other = (af.certify(experiment(), problem=problem, seeds=1) for problem in (packed, dense))
    assert one.constants.smoothness == pytest.approx(other.constants.smoothness, rel=1e-6)


def test_shards_have_their_own_rows_and_train_to_the_same_bits():
    packed, _ = both_problems("logistic", l2=0.1)
    shard = pickle.loads(pickle.dumps(packed.shard(2)))
    assert shard.rows.x.shape == (45, 25)
    assert sparse.issparse(shard.rows.x)
    start = np.linspace(-1, 1, 26)
    trained = packed.local_train(start, 2, STRATEGY.work, 7)
    assert shard.train(start, STRATEGY.work, 7).tobytes() == trained.tobytes()
    assert shard.loss(start) == packed.client_loss(start, 2)
    again = pickle.loads(pickle.dumps(packed))
    assert again.fingerprint() == packed.fingerprint()


def test_trusted_rows_and_liars_that_change_what_they_send():
    packed, _ = both_problems("logistic", l2=0.1)
    drawn = af.problems.TrustedRows(rows=10).shard(packed, 0)
    assert drawn.num_examples == 10
    attacked = experiment(attack=af.Liars(attack=af.attacks.SignFlip(), clients=(1,)))
    assert af.run(attacked, problem=packed).verdict == "finished"
    poisoned = experiment(attack=af.Liars(attack=af.attacks.LabelFlip(), clients=(1,)))
    with pytest.raises(ConfigError, match=r"LabelFlip is trained on rows .* as an array, and these are sparse"):
        af.run(poisoned, problem=packed)


def test_models_that_need_an_array_refuse_sparse_rows():
    packed, _ = both_kinds(labels=False)
    with pytest.raises(ConfigError, match=r"Softmax is trained on rows .* sparse. Learn a linear model"):
        af.problems.Softmax(packed, num_classes=2)
    pytest.importorskip("torch")
    with pytest.raises(ConfigError, match="A PyTorch module is trained on rows"):
        af.problems.Perceptron(num_classes=2).build(packed)


@pytest.mark.slow
def test_a_live_run_on_sparse_rows_verifies(tmp_path):
    live = af.replace(af.from_toml(SPARSE_TEXT), budget=af.Budget(rounds=4))
    run = af.run_live(live, out=tmp_path / "live.sqlite")
    assert run.verdict == "finished"
    assert af.verify(tmp_path / "live.sqlite").ok
