"""The linear problem's interface, against naive NumPy and the readable kernels."""

import pickle
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.record import ValidationError, from_plain, to_plain
from asyncfed.core.types import Work
from asyncfed.kernels import reference
from asyncfed.kernels.losses import CLASSIFICATION_LOSSES, LOSS_CODES, loss_values
from asyncfed.problems import sgd_tasks
from asyncfed.problems.linear import Linear, LinearModel
from asyncfed.problems.protocol import Jobs


class Packed:
    """The least a problem asks of its data."""

    def __init__(self, x, y, offsets):
        self.x, self.y, self.offsets = np.asarray(x), np.asarray(y), np.asarray(offsets, dtype=np.int64)

    def sha256(self):
        return sha256(self.x.tobytes() + self.y.tobytes() + self.offsets.tobytes()).hexdigest()


def random_clients(seed=0, sizes=(70, 1, 33), d=4, dtype=np.float64, labels=True):
    rng = np.random.default_rng(seed)
    rows = sum(sizes)
    y = rng.choice([-1.0, 1.0], rows) if labels else rng.normal(size=rows)
    return Packed(rng.normal(size=(rows, d)).astype(dtype), y.astype(dtype), np.cumsum([0, *sizes]))


@given(
    seed=st.integers(0, 1000),
    loss=st.sampled_from(sorted(LOSS_CODES)),
    l2=st.sampled_from([0.0, 0.7]),
    penalize_bias=st.booleans(),
    fit_bias=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_evaluate_is_the_naive_computation(seed, loss, l2, penalize_bias, fit_bias):
    data = random_clients(seed)
    problem = Linear(data, loss, l2, penalize_bias, fit_bias)
    params = np.random.default_rng(seed).normal(size=problem.num_params)
    weights, bias = params[:4], params[4] if fit_bias else 0.0
    margins = data.x @ weights + bias
    values = loss_values(LOSS_CODES[loss], margins, data.y)
    penalty = l2 / 2 * (weights @ weights + (bias**2 if penalize_bias else 0.0))
    owners = [slice(0, 70), slice(70, 71), slice(71, 104)]
    means = [values[rows].mean() for rows in owners]
    right = np.sign(margins) == data.y
    expected = {
        "objective": np.mean(means) + penalty,
        "pooled_loss": values.mean() + penalty,
        "first_client_loss": np.mean([values[0:32].mean(), values[32:64].mean(), values[64:70].mean()]),
    }
    if loss in CLASSIFICATION_LOSSES:
        expected["accuracy"] = np.mean([right[rows].mean() for rows in owners])
        expected["pooled_accuracy"] = right.mean()
    measured = problem.evaluate(params)
    assert set(measured) == set(expected)
    assert measured == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(problem.client_losses(params), np.array(means) + penalty, rtol=1e-12)
    assert [problem.client_loss(params, c) for c in range(3)] == pytest.approx(np.array(means) + penalty, rel=1e-12)


@pytest.mark.parametrize("loss", sorted(LOSS_CODES))
@pytest.mark.parametrize(("penalize_bias", "fit_bias"), [(True, True), (False, True), (True, False)])
def test_gradient_is_the_finite_difference_of_the_client_loss(loss, penalize_bias, fit_bias):
    problem = Linear(random_clients(7), loss, 0.4, penalize_bias, fit_bias)
    params = np.random.default_rng(7).normal(size=problem.num_params)
    for client in range(3):
        gradient = problem.gradient(params, client)
        for j, step in enumerate(np.eye(problem.num_params) * 1e-6):
            rise = problem.client_loss(params + step, client) - problem.client_loss(params - step, client)
            assert gradient[j] == pytest.approx(rise / 2e-6, abs=1e-7)


def test_local_training_is_that_of_the_readable_kernel():
    data = random_clients(3)
    problem = Linear(data, "logistic", l2=0.1, penalize_bias=False)
    start = np.random.default_rng(0).normal(size=5)
    work = Work(epochs=3, batch_size=8, learning_rate=0.05, decay=0.5, proximal=0.2)
    slow = reference.train_one(
        data.x[71:], data.y[71:], start, 99, epochs=3, batch=8, lr=0.05, decay=0.5, prox=0.2,
        loss_code=LOSS_CODES["logistic"], l2=0.1, penalize_bias=False,
    )  # fmt: skip
    np.testing.assert_allclose(problem.local_train(start, 2, work, 99), slow, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("same", [True, False])
def test_many_trainings_are_the_single_ones_to_the_last_bit(dtype, same):
    problem = Linear(random_clients(5, dtype=dtype), "squared_hinge", l2=0.01)
    shared = Work(epochs=2, batch_size=4, learning_rate=1)
    works = [shared] * 6 if same else [Work(epochs=1 + k, batch_size=3 + k, proximal=0.1 * k) for k in range(6)]
    starts = np.random.default_rng(1).normal(size=(6, 5))
    clients, keys = [2, 0, 1, 1, 0, 2], [2**64 - 1 - k for k in range(6)]
    many = problem.local_train_many(Jobs(starts, clients, works, keys), threads=2)
    assert many.dtype == dtype
    for k in range(6):
        alone = problem.local_train(starts[k], clients[k], works[k], keys[k])
        assert alone.tobytes() == many[k].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("same", [True, False])
def test_corrections_and_steps_are_those_of_the_single_trainings_to_the_last_bit(dtype, same):
    problem = Linear(random_clients(5, dtype=dtype), "squared_hinge", l2=0.01)
    others = [Work(epochs=2), Work(patience=1, epochs=30), *(Work(batch_size=3 + k, steps=5 * k) for k in range(1, 5))]
    works = [Work(batch_size=4, steps=7)] * 6 if same else others
    starts, corrections = np.random.default_rng(1).normal(size=(2, 6, 5))
    clients, keys, done = [2, 0, 1, 1, 0, 2], [2**64 - 1 - k for k in range(6)], np.zeros(6, np.int64)
    jobs = Jobs(starts, clients, works, keys, corrections=corrections, steps_done=done)
    many, counted = problem.local_train_many(jobs, threads=2), done.copy()
    steps, sums, squares = problem.local_path_moments(jobs, threads=2)
    assert np.array_equal(steps, counted)
    for k in range(6):
        one, own = jobs.part(k, k + 1), np.zeros(1, np.int64)
        assert problem.local_train_many(one._replace(steps_done=own)).tobytes() == many[k].tobytes()
        assert own[0] == counted[k]
        if not works[k].patience:
            assert own[0] == works[k].count_steps(int(problem.num_examples[clients[k]]))
        moments = problem.local_path_moments(one)
        assert [part[0].tobytes() for part in moments] == [steps[k].tobytes(), sums[k].tobytes(), squares[k].tobytes()]
    assert problem.local_train_many(jobs._replace(corrections=None)).tobytes() != many.tobytes()


def test_no_tasks_give_no_params():
    problem = Linear(random_clients())
    none = Jobs(np.empty((0, 5)), [], [], [])
    assert problem.local_train_many(none).shape == (0, 5)
    assert [part.shape for part in problem.local_path_moments(none)] == [(0,), (0, 5), (0,)]


@pytest.mark.parametrize("count", [3, sgd_tasks._MOST_KEPT + 1])
def test_equal_works_train_alike_call_after_call_whether_or_not_they_are_one_object(count):
    problem = Linear(random_clients(5), "logistic")
    clients, keys = [k % 3 for k in range(count)], list(range(count))
    starts = np.random.default_rng(1).normal(size=(count, 5))
    shared = [Work(learning_rate=0.5)] * count
    first, again, apart, other = (
        problem.local_train_many(Jobs(starts, clients, works, keys)).tobytes()
        for works in (
            shared,
            shared,
            [Work(learning_rate=0.5) for _ in range(count)],
            [Work(learning_rate=0.4)] * count,
        )
    )
    assert first == again == apart != other


def test_drift_from_the_moments_is_that_of_every_point_of_the_path():
    data = random_clients(3)
    problem = Linear(data, "squared_hinge", l2=0.1, penalize_bias=False)
    rng = np.random.default_rng(0)
    starts, server = rng.normal(size=(3, 5)), rng.normal(size=5)
    works = [Work(epochs=1 + k, batch_size=8, learning_rate=0.05, decay=0.5, proximal=0.2 * k) for k in range(3)]
    clients, keys = [2, 0, 2], [7, 8, 9]
    steps, sums, squares = problem.local_path_moments(Jobs(starts, clients, works, keys), threads=2)
    gaps = starts - server
    measured = squares + 2 * (sums * gaps).sum(axis=1) + steps * (gaps**2).sum(axis=1)
    for k, (client, work) in enumerate(zip(clients, works, strict=True)):
        rows = slice(data.offsets[client], data.offsets[client + 1])
        path = reference.train_path(
            data.x[rows], data.y[rows], starts[k], keys[k], epochs=work.epochs, batch=8, lr=0.05, decay=0.5,
            prox=work.proximal, loss_code=LOSS_CODES["squared_hinge"], l2=0.1, penalize_bias=False,
        )  # fmt: skip
        np.testing.assert_allclose(problem.local_train(starts[k], client, work, keys[k]), path[-1], rtol=1e-11)
        assert measured[k] == pytest.approx(sum(((point - server) ** 2).sum() for point in path[:-1]), rel=1e-11)


def test_training_lowers_the_loss():
    problem = Linear(random_clients(2, labels=False), "mse")
    trained = problem.local_train(problem.init(0), 0, Work(epochs=20), key=4)
    assert problem.client_loss(trained, 0) < problem.client_loss(problem.init(0), 0)


def test_a_pickled_problem_holds_its_data_once_and_trains_alike():
    problem = Linear(random_clients(sizes=(900, 100), d=8), "logistic", 0.1, penalize_bias=False)
    text = pickle.dumps(problem)
    assert len(text) < 1.1 * problem.clients.x.nbytes + problem.clients.y.nbytes
    copy, start = pickle.loads(text), problem.init(0, how="torch")
    assert copy.fingerprint() == problem.fingerprint()
    assert copy.local_train(start, 1, Work(), 5).tobytes() == problem.local_train(start, 1, Work(), 5).tobytes()


def test_torch_initialisation_is_keyed_and_within_its_bound():
    problem = Linear(random_clients(d=16, sizes=(3,) * 200), "hinge")
    draws = np.array([problem.init(5, client, "torch") for client in range(200)])
    assert np.abs(draws).max() <= 0.25
    assert np.abs(draws).max() > 0.24
    assert abs(draws.mean()) < 4 * 0.25 / np.sqrt(3 * draws.size)
    assert np.array_equal(draws[3], problem.init(5, 3, "torch"))
    distinct = [*draws, problem.init(5, None, "torch"), problem.init(6, 3, "torch")]
    assert len({draw.tobytes() for draw in distinct}) == 202


def test_zeros_initialisation_and_sizes():
    problem = Linear(random_clients(dtype=np.float32), fit_bias=False)
    assert problem.init(3).tolist() == [0.0] * 4
    assert (problem.num_clients, problem.num_params, problem.dtype) == (3, 4, np.float32)
    assert problem.num_examples.tolist() == [70, 1, 33]


def test_fingerprint_tells_every_setting_and_the_data_apart():
    data = random_clients()
    models = [
        LinearModel(),
        LinearModel(loss="mse"),
        LinearModel(l2=0.1),
        LinearModel(penalize_bias=False),
        LinearModel(fit_bias=False),
    ]
    prints = [model.build(data).fingerprint() for model in models] + [Linear(random_clients(1)).fingerprint()]
    assert len(set(prints)) == 6
    assert prints[0] == LinearModel().build(random_clients()).fingerprint()
    assert len(bytes.fromhex(prints[0])) == 32


def test_the_written_form_comes_back_and_refuses_unknown_keys():
    model = LinearModel(loss="logistic", l2=0.1, penalize_bias=False)
    assert from_plain(to_plain(model), LinearModel) == model
    with pytest.raises(ValidationError, match="lambda"):
        from_plain({"lambda": 0.1}, LinearModel)


def test_errors_name_the_fault():
    with pytest.raises(ConfigError, match='Did you mean "logistic"'):
        LinearModel(loss="logistc")
    with pytest.raises(ConfigError, match=r"l2 is -1.0; it must be zero or a positive number"):
        Linear(random_clients(), l2=-1.0)
    with pytest.raises(DataError, match=r'"hinge" needs labels −1 and \+1, but y holds 0.0'):
        Linear(Packed(np.ones((2, 1)), [1.0, 0.0], [0, 2]), "hinge")
    with pytest.raises(DataError, match=r"needs labels.*nan"):
        Linear(Packed(np.ones((2, 1)), [1.0, np.nan], [0, 2]), "hinge")
    with pytest.raises(DataError, match="no rows"):
        Linear(Packed(np.ones((2, 1)), np.ones(2), [0, 2, 2]))
    problem = Linear(random_clients())
    with pytest.raises(ConfigError, match=r"client 3 .*clients are 0 … 2"):
        problem.local_train(problem.init(0), 3, Work(), 0)
    with pytest.raises(ConfigError, match=r"There is no client -1; clients are 0 … 2"):
        problem.client_loss(problem.init(0), -1)
    with pytest.raises(ConfigError, match="2 clients but 1 works"):
        problem.local_train_many(Jobs(np.zeros((2, 5)), [0, 1], [Work()], [0, 1]))
    with pytest.raises(DataError, match=r"keys has shape \(1,\) and work \(2, 5\); 2 tasks need \(2,\) and \(2, 5\)"):
        problem.local_path_moments(Jobs(np.zeros((2, 5)), [0, 1], [Work()] * 2, [0]))
    with pytest.raises(ConfigError, match='Did you mean "torch"'):
        problem.init(0, how="torc")


def test_the_huber_hinge_has_a_width_and_the_others_have_none():
    data = random_clients(3)
    narrow, wide = (Linear(data, "huber_hinge", l2=0.1, hinge_width=width) for width in (0.1, 2.0))
    params = np.full(narrow.num_params, 0.1)
    assert narrow.evaluate(params)["objective"] > wide.evaluate(params)["objective"]
    for problem in (narrow, wide):
        gradients = [problem.gradient(problem.optimum(), client) for client in range(problem.num_clients)]
        assert np.linalg.norm(np.mean(gradients, axis=0)) < 1e-10
    assert narrow.fingerprint() != wide.fingerprint()
    assert Linear(data, "huber_hinge").fingerprint() == Linear(data, "huber_hinge", hinge_width=1.0).fingerprint()
    assert pickle.loads(pickle.dumps(narrow)).model == narrow.model
    with pytest.raises(ConfigError, match='hinge_width belongs to the loss "huber_hinge", but the loss is "hinge"'):
        LinearModel(loss="hinge", hinge_width=1.0)
    with pytest.raises(ConfigError, match=r"hinge_width is 0\.0; it must be a positive number"):
        LinearModel(loss="huber_hinge", hinge_width=0.0)
