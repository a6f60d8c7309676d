"""A problem on clients that hold no rows is, to the last bit, the one on the same rows in arrays."""

import pickle

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.types import Work
from asyncfed.data import DataRequest
from asyncfed.problems import FunctionClients, Jobs, LinearModel, Population, population
from asyncfed.problems.population import build_population
from asyncfed.testing import check_problem

CLIENTS = 20


def both(model=LinearModel(), dtype="float64", **law):
    data = af.data.Population(rows=3, most_rows=9, **law)
    request = DataRequest(num_clients=CLIENTS, seed=5, dtype=dtype, labels=model.labels)
    return build_population(model, data.virtual_clients(request)), model.build(data.prepare(request).clients)


def jobs_of(problem, **work):
    generator = np.random.default_rng(0)
    clients = generator.integers(0, CLIENTS, 30).tolist()
    starts = generator.normal(size=(30, problem.num_params)).astype(problem.dtype)
    return Jobs(starts, clients, [Work(batch_size=4, **work)] * 30, generator.integers(0, 2**62, 30).tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["least_squares", "logistic", "huber_hinge"])
@pytest.mark.parametrize("threads", [1, 2])
def test_training_gives_the_bytes_of_rows_in_arrays(dtype, loss, threads, monkeypatch):
    virtual, listed = both(LinearModel(loss=loss, l2=0.1), dtype)
    jobs = jobs_of(virtual, epochs=3)
    expected = listed.local_train_many(jobs)
    assert virtual.local_train_many(jobs, threads).tobytes() == expected.tobytes()
    monkeypatch.setattr(population, "CELLS_AT_ONCE", 200)  # a few clients at a time
    assert virtual.local_train_many(jobs, threads).tobytes() == expected.tobytes()
    for one, other in zip(virtual.local_path_moments(jobs), listed.local_path_moments(jobs), strict=True):
        assert np.array_equal(one, other)
    one = virtual.local_train(jobs.starts[0], jobs.clients[0], jobs.works[0], jobs.keys[0])
    assert one.tobytes() == expected[0].tobytes()


def test_corrections_and_counted_steps_reach_every_piece(monkeypatch):
    monkeypatch.setattr(population, "CELLS_AT_ONCE", 200)
    virtual, listed = both()
    plain = jobs_of(virtual, epochs=5, patience=1)
    corrections = np.random.default_rng(1).normal(size=plain.starts.shape)
    trained, counts = [], []
    for problem in (virtual, listed):
        counts.append(np.zeros(30, np.int64))
        trained.append(problem.local_train_many(plain._replace(corrections=corrections, steps_done=counts[-1])))
    assert np.array_equal(*trained)
    assert np.array_equal(*counts)
    assert counts[0].min() > 0


def test_what_is_measured_of_single_clients_is_the_same():
    virtual, listed = both(LinearModel(l2=0.1))
    params = np.random.default_rng(2).normal(size=virtual.num_params)
    assert np.array_equal(virtual.client_losses(params), listed.client_losses(params))
    assert np.array_equal(virtual.num_examples, listed.num_examples)
    assert virtual.client_loss(params, 7) == listed.client_loss(params, 7)
    assert np.array_equal(virtual.gradient(params, 7), listed.gradient(params, 7))
    assert np.array_equal(virtual.client_row_losses(params, 7), listed.client_row_losses(params, 7))
    key = 9
    assert np.array_equal(virtual.shard(7).train(params, Work(), key), listed.local_train(params, 7, Work(), key))
    assert np.array_equal(virtual.init(3, how="torch"), listed.init(3, how="torch"))


@pytest.mark.parametrize("loss", ["least_squares", "logistic"])
def test_a_few_clients_are_all_measured(loss):
    virtual, listed = both(LinearModel(loss=loss, l2=0.1))
    params = np.random.default_rng(2).normal(size=virtual.num_params)
    measured, expected = virtual.evaluate(params), listed.evaluate(params)
    assert measured == {name: expected.get(name, measured[name]) for name in measured}
    assert {"objective", "pooled_loss", "test_loss"} <= set(measured)
    assert virtual.optimum() == pytest.approx(listed.optimum())


def test_it_passes_the_public_check():
    check_problem(both()[0])


@pytest.mark.parametrize("model", [LinearModel(l2=0.3), LinearModel(loss="mse", l2=0.3, penalize_bias=False)])
def test_the_objective_is_the_expected_loss_and_its_optimum_the_lowest(model):
    data = af.data.Population(rows=20, heterogeneity=0.4, shift=0.7, noise=0.3, num_features=4)
    problem = build_population(model, data.virtual_clients(DataRequest(num_clients=10**8, seed=2)))
    params, best = np.array([0.5, -1.0, 0.2, 0.1, 2.0]), problem.optimum()
    many = model.build(data.prepare(DataRequest(num_clients=20_000, seed=2)).clients)
    assert many.evaluate(params)["objective"] == pytest.approx(problem.evaluate(params)["objective"], rel=0.03)
    assert best == pytest.approx(many.optimum(), abs=0.03)
    lowest = problem.evaluate(best)["objective"]
    for step in 1e-3 * np.eye(5):
        assert problem.evaluate(best + step)["objective"] > lowest
        assert problem.evaluate(best - step)["objective"] > lowest


def test_without_a_formula_the_measured_clients_are_the_objective():
    people = af.data.Population().virtual_clients(DataRequest(num_clients=10**8, labels=True))
    problem = build_population(LinearModel(loss="logistic", l2=0.1), people)
    params = np.ones(problem.num_params)
    rows = population.MadeRows(*people.pack(problem.measured))
    assert problem.evaluate(params)["objective"] == problem.model.build(rows).evaluate(params)["objective"]
    assert problem.optimum() is None
    assert {"accuracy", "test_accuracy"} <= set(problem.evaluate(params))


def test_very_many_clients_are_measured_on_a_sample_and_not_listed():
    problem = build_population(LinearModel(), af.data.Population().virtual_clients(DataRequest(num_clients=10**8)))
    assert len(set(problem.measured)) == 1000
    assert max(problem.measured) > 10**7
    assert pickle.loads(pickle.dumps(problem)).measured == problem.measured
    for ask in (lambda: problem.num_examples, lambda: problem.client_losses(np.zeros(11))):
        with pytest.raises(ConfigError, match="there are 100,000,000; the limit is 1,000,000"):
            ask()
    with pytest.raises(ConfigError, match="There is no client 100000000"):
        problem.local_train(np.zeros(11), 10**8, Work(), 0)


def test_only_linear_models_fit():
    people = af.data.Population().virtual_clients(DataRequest())
    with pytest.raises(ConfigError, match="this is a SoftmaxModel"):
        build_population(af.problems.SoftmaxModel(), people)
    with pytest.raises(ConfigError, match="first_client_batches"):
        build_population(LinearModel(first_client_batches="reshuffled"), people)
    with pytest.raises(DataError, match="needs labels"):
        Population(LinearModel(loss="logistic"), people)


# ---- clients by a function ------------------------------------------------------------------------------------


def line(client):
    x = np.linspace(0.0, 1.0, 2 + client % 3)[:, None] + client % 7
    return x, 2.0 * x[:, 0]


def test_a_function_makes_rows():
    people = FunctionClients(line, 10**8, 1, num_rows=lambda client: 2 + client % 3, name="line", held_out_rows=line)
    problem = Population(LinearModel(fit_bias=False), people)
    assert problem.evaluate(np.array([2.0])) == pytest.approx({"objective": 0.0, "pooled_loss": 0.0, "test_loss": 0.0})
    assert problem.optimum() is None
    x, y = line(99_999_999)
    alone = LinearModel(fit_bias=False).build(af.data.Clients.from_lists([x], [y], labels=False))
    work = Work(epochs=2, batch_size=2)
    assert problem.local_train(np.ones(1), 99_999_999, work, 5) == alone.local_train(np.ones(1), 0, work, 5)
    check_problem(Population(LinearModel(), FunctionClients(line, 6, 1, lambda client: 2 + client % 3, name="line")))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (lambda client: ([[1.0]], [1.0]), r"features of shape \(1, 1\).*client 0 has 2 rows"),
        (lambda client: ([[1.0], [np.inf]], [1.0, 2.0]), "not finite"),
        (lambda client: ([[1.0], [2.0]], [1.0, 2.0]), "not −1 or [+]1"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, words):
    people = FunctionClients(rows, 5, 1, num_rows=2, name="bad", labels=True)
    with pytest.raises(DataError, match=words):
        people.pack([0])


def test_a_name_is_part_of_the_fingerprint():
    prints = {FunctionClients(line, 9, 1, lambda client: 2 + client % 3, name=name).sha256() for name in ("a", "b")}
    assert len(prints) == 2
    with pytest.raises(ConfigError, match="must be at least 1"):
        FunctionClients(line, 0, 1, num_rows=1, name="nobody")


def test_clients_by_a_function_take_numpys_own_kinds_of_numbers():
    def rows(client):
        return [[1.0], [2.0]], [1.0, 2.0]

    plain = af.problems.FunctionClients(rows, 5, 1, num_rows=2, name="line", dtype=np.dtype("f4"))
    same = af.problems.FunctionClients(rows, 5, 1, num_rows=np.int64(2), name="line", dtype=np.float32)
    assert same.sha256() == plain.sha256()
    assert same.sizes[4] == 2
    with pytest.raises(af.errors.ConfigError, match="dtype is int32; rows are float32 or float64"):
        af.problems.FunctionClients(rows, 5, 1, num_rows=2, name="line", dtype=np.int32)
