"""Fast clients are merged more often, and the model leans towards them: shown, measured per client, and corrected."""

import json

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.client_outcomes import effective_weights, measure_clients, train_alone
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.types import Budget, Work
from asyncfed.data import Clients, HeldOut, Holdout
from asyncfed.delays import FunctionDelays
from asyncfed.strategies import AFL, FedAsync, FedBuff
from asyncfed.strategies.discounts import NoDiscount
from asyncfed.strategies.samplers import Fair, UniformIdle

SPEEDS = [1.0] * 4 + [9.0] * 4
"""Seconds a ticket takes: the first half of the clients is nine times as fast."""


@pytest.fixture(scope="module")
def two_worlds():
    """Eight clients; the fast half and the slow half obey different laws, so the optimum lies in between."""
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=(40, 3)) for _ in SPEEDS]
    laws = [np.array([1.0, 2.0, 3.0])] * 4 + [np.array([3.0, 0.0, -1.0])] * 4
    ys = [x @ law + 0.05 * rng.normal(size=40) for x, law in zip(xs, laws, strict=True)]
    names = [f"fast {i}" for i in range(4)] + [f"slow {i}" for i in range(4)]
    return af.problems.Linear(Clients.from_lists(xs, ys, names=names))


WORK = Work(epochs=1, batch_size=10, learning_rate=0.02)


def run_of(two_worlds, strategy, rounds=300):
    experiment = af.Experiment(num_clients=8, strategy=strategy, budget=Budget(rounds=rounds))
    delays = FunctionDelays(lambda client, ticket, work: SPEEDS[client]).bind(8, 0)
    return af.run(experiment, problem=two_worlds, delays=delays)


def settled_distance(run):
    """The mean distance to the optimum over the second half of the run."""
    distance = run.evaluations["distance"]
    return float(distance[len(distance) // 2 :].mean())


def fedasync(**how):
    return FedAsync(**{"concurrency": 4, "mixing": 0.1, "discount": NoDiscount(), "work": WORK, **how})


def test_uncorrected_the_model_leans_towards_the_fast(two_worlds):
    run = run_of(two_worlds, fedasync())
    clients = run.clients
    assert clients["weight"][:4].sum() > 0.6
    assert clients["loss"][:4].mean() < clients["loss"][4:].mean()


def test_inverse_participation_brings_the_optimum_nearer(two_worlds):
    plain = run_of(two_worlds, fedasync())
    evened = run_of(two_worlds, fedasync(weighting="inverse_participation"))
    assert settled_distance(evened) < 0.6 * settled_distance(plain)
    assert evened.clients["weight"][:4].sum() == pytest.approx(0.5, abs=0.07)


@pytest.mark.parametrize("aggregate", ["mixing", "delta_mean"])
def test_it_does_so_for_the_readings_of_afl(two_worlds, aggregate):
    def afl(weighting):
        mixing = 0.1
        return AFL(concurrency=4, aggregate=aggregate, mixing=mixing, weighting=weighting, work=WORK,
                   schedule=af.ConstantRate())  # fmt: skip

    plain, evened = (run_of(two_worlds, afl(how)) for how in ("equal", "inverse_participation"))
    assert settled_distance(evened) < 0.6 * settled_distance(plain)


def test_fair_selection_brings_the_optimum_nearer_and_evens_participation(two_worlds):
    plain = run_of(two_worlds, fedasync(sampler=UniformIdle()))
    fair = run_of(two_worlds, fedasync(sampler=Fair()))
    assert settled_distance(fair) < 0.6 * settled_distance(plain)
    assert fair.rounds["jain_index"][-1] > 0.97 > plain.rounds["jain_index"][-1]


def test_latest_needs_no_correction_and_says_so():
    with pytest.raises(ConfigError, match='"latest" has every client in its mean once'):
        AFL(weighting="inverse_participation")


# ---- the table ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run.sqlite"
    experiment = af.replace(af.presets.svm(rounds=60, strategy="fedasync", num_clients=12), holdout=Holdout())
    af.run(experiment, out=path).journal.close()
    return path


def test_losses_are_those_of_numpy_on_each_clients_own_test_rows(labelled):
    run = af.load(labelled)
    table, test = run.clients, run.problem.held_out["test"]
    assert table.part == "test"
    for client in range(12):
        rows = slice(test.offsets[client], test.offsets[client + 1])
        margins = test.y[rows] * (test.x[rows] @ run.params[:-1] + run.params[-1])
        assert table["loss"][client] == pytest.approx(np.maximum(0, 1 - margins).mean())
        assert table["accuracy"][client] == pytest.approx((margins > 0).mean())
    assert table["merges"].tolist() == run.participation().tolist()
    assert table["share"].sum() == pytest.approx(1.0)


def test_a_model_trained_alone_knows_nothing_of_the_others(two_worlds):
    data = two_worlds.clients
    held_out = HeldOut(data.x[::2].copy(), data.y[::2].copy(), data.offsets // 2)
    problem = af.problems.Linear(data, held_out={"test": held_out})
    table = measure_clients(af.Experiment(num_clients=8), problem, two_worlds.optimum(), np.ones(8), [])
    assert table["name"].tolist()[0] == "fast 0"
    assert table.alone_description == "the minimiser of the client's own loss"
    assert (table["alone"] < 0.05).all()  # each world alone is easily learnt; together they contradict
    assert (table["gain_low"] <= table["gain"]).all()
    assert (table["gain"] <= table["gain_high"]).all()
    assert (table["gain_high"] < 0).all()
    assert table.summary()["worse off federated"] == 1.0


def test_on_rows_that_were_trained_on_nothing_is_compared(two_worlds):
    run = run_of(two_worlds, fedasync(), rounds=40)
    assert run.clients.not_compared == "no rows were held out"
    assert not {"alone", "gain"} & set(run.clients.columns)


def test_a_run_that_is_still_falling_is_not_compared(small):
    run = af.run(small(budget=Budget(rounds=20), holdout=Holdout(validation=0.2, test=0.2)))
    assert run.clients.not_compared.startswith("stopped while still falling: the last tenth of the run gained")
    assert "gain" not in run.clients.columns


def test_where_there_is_no_minimiser_a_model_is_trained_alone(labelled):
    run = af.load(labelled)
    mean_merges = run.participation().mean()
    _, epochs = train_alone(run.experiment, run.problem, run.participation())
    assert (epochs == round(100 * mean_merges)).all()


def test_alone_it_makes_as_many_steps_as_it_was_merged_for():
    work = Work(steps=5, batch_size=16, learning_rate=0.01)
    base = af.presets.svm(rounds=12, strategy="fedasync", num_clients=12)
    run = af.run(af.replace(base, strategy=af.replace(base.strategy, work=work)))
    steps = round(5 * run.participation().mean())
    assert steps > 5
    per_epoch = -(-run.problem.num_examples // 16)
    _, epochs = train_alone(run.experiment, run.problem, run.participation())
    assert epochs.tolist() == (-(-steps // per_epoch)).tolist()


def test_the_optimum_of_a_client_is_that_of_a_federation_of_one(two_worlds):
    x, y = two_worlds.clients.client(5)
    alone = af.problems.Linear(Clients.from_lists([x], [y]))
    np.testing.assert_allclose(two_worlds.client_optimum(5), alone.optimum(), rtol=1e-12)


def test_effective_weights_count_what_merges_gave(two_worlds):
    run = run_of(two_worlds, FedBuff(concurrency=4, buffer_size=3, work=WORK), rounds=20)
    events, given, client_of = run.journal.event_columns(), np.zeros(8), {}
    for kind, ticket, client, detail in zip(
        *(events[name] for name in ("kind", "ticket", "client", "detail")), strict=True
    ):
        if kind == "dispatch":
            client_of[ticket] = client
        elif kind == "merge":
            form = json.loads(detail)
            for number, weight in zip(form["tickets"], form["weights"], strict=True):
                given[client_of[number]] += weight
    np.testing.assert_allclose(run.clients["weight"], given / given.sum())


def test_in_a_mean_of_latest_models_all_clients_weigh_the_same(two_worlds):
    run = run_of(two_worlds, AFL(concurrency=4, work=WORK), rounds=30)
    np.testing.assert_allclose(run.clients["weight"], 1 / 8)
    assert effective_weights([], 3).tolist() == [0.0, 0.0, 0.0]


def test_data_that_the_file_does_not_describe_are_asked_for(two_worlds, tmp_path):
    path = tmp_path / "run.sqlite"
    experiment = af.Experiment(num_clients=8, strategy=fedasync(), budget=Budget(rounds=2))
    run = af.run(experiment, problem=two_worlds, out=path)
    assert len(run.clients) == 8
    with pytest.raises(JournalError, match=r"af\.load\(path, problem=\.\.\.\)"):
        _ = af.load(path).clients
    assert af.load(path).known_clients is None
    np.testing.assert_array_equal(af.load(path, two_worlds).clients["loss"], run.clients["loss"])


def test_a_problem_that_cannot_score_clients_says_what_to_add(small):
    with pytest.raises(ConfigError, match=r"Give it `parts`, `client_names`, `client_scores` and"):
        measure_clients(small(), object(), np.zeros(3), np.ones(4), [])
