"""PyTorch problems serve single clients: held-out rows, scores client by client, and runs that look at them."""

import pickle

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data import Holdout
from asyncfed.problems import TensorClients
from asyncfed.problems.protocol import ScoresClients
from asyncfed.strategies.samplers import Fair

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn
F = torch.nn.functional

TRAINED, VALIDATION, TEST = (12, 30, 7, 18), (5, 0, 4, 9), (0, 6, 11, 0)
WORK = af.Work(epochs=2, batch_size=8, learning_rate=0.1)


def rows(sizes, seed=0, laws=(1.0,)):
    """The class is the sign of the first feature, times the client's law."""
    rng = np.random.default_rng(seed)
    xs = [rng.normal(size=(n, 5)).astype(np.float32) for n in sizes]
    return [(x, (laws[c % len(laws)] * x[:, 0] > 0).astype(np.int64)) for c, x in enumerate(xs)]


def perceptron():
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))


def curved():
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))


def mean_loss(outputs, targets):
    return F.cross_entropy(outputs, targets)


def held_out_problem(model_fn=perceptron, loss_fn="cross_entropy", **how):
    held_out = {"validation": rows(VALIDATION, 1), "test": rows(TEST, 2)}
    return af.problems.torch(model_fn, loss_fn, rows(TRAINED), **{"held_out": held_out, **how})


def naive(problem, params, x, y):
    outputs = problem.module(params)(torch.tensor(x))
    loss = F.cross_entropy(outputs, torch.tensor(y), reduction="none")
    return loss.double().detach().numpy(), (outputs.argmax(1) == torch.tensor(y)).double().numpy()


@pytest.mark.parametrize("loss_fn", ["cross_entropy", mean_loss])
@pytest.mark.parametrize(("part", "sizes", "seed"), [("validation", VALIDATION, 1), ("test", TEST, 2)])
@pytest.mark.parametrize("own", [False, True])
def test_scores_are_the_naive_ones(part, sizes, seed, own, loss_fn):
    problem = held_out_problem(loss_fn=loss_fn, metrics=["accuracy"])
    assert isinstance(problem, ScoresClients)
    assert problem.parts == ("training", "validation", "test")
    models = np.stack([problem.init(client if own else 0) for client in range(4)])
    scores = problem.client_scores(models if own else models[0], part)
    assert scores.rows.tolist() == list(sizes)
    for client, (x, y) in enumerate(rows(sizes, seed)):
        if len(y) == 0:
            assert np.isnan(scores.loss[client])
            assert np.isnan(scores.accuracy[client])
            continue
        loss, right = naive(problem, models[client], x, y)
        assert scores.loss[client] == pytest.approx(loss.mean(), rel=1e-6)
        assert scores.accuracy[client] == pytest.approx(right.mean())


def test_evaluations_are_means_over_the_clients_that_have_rows():
    problem = held_out_problem()
    params = problem.init(0)
    seen = problem.evaluate(params)
    for part in ("validation", "test"):
        scores = problem.client_scores(params, part)
        assert seen[f"{part}_loss"] == pytest.approx(np.nanmean(scores.loss))
        assert seen[f"{part}_accuracy"] == pytest.approx(np.nanmean(scores.accuracy))
    plain = af.problems.torch(perceptron, "cross_entropy", rows(TRAINED)).evaluate(params)
    assert {name: seen[name] for name in plain} == plain


def test_training_scores_are_the_losses_of_the_clients():
    problem = held_out_problem()
    params = problem.init(3)
    scores = problem.client_scores(params, "training")
    np.testing.assert_array_equal(scores.loss, problem.client_losses(params))
    by_own = problem.client_scores(np.tile(params, (4, 1)), "training", threads=2)
    np.testing.assert_allclose(by_own.loss, scores.loss, rtol=1e-6)
    np.testing.assert_array_equal(by_own.accuracy, scores.accuracy)
    assert problem.client_optimum(0) is None


@pytest.mark.parametrize("own", [False, True])
def test_threads_change_no_score_and_leave_the_generator_alone(own):
    sizes = [3000, 1, 2500, 1400] * 3
    problem = af.problems.torch(
        lambda: nn.Sequential(nn.Linear(5, 200), nn.Tanh(), nn.Linear(200, 2)),
        "cross_entropy",
        rows(sizes),
        held_out={"test": rows(sizes[::-1], 5)},
    )
    models = np.stack([problem.init(c) for c in range(len(sizes))])
    given = models if own else models[0]
    before = torch.get_rng_state()
    alone = problem.client_scores(given, "test")
    for _ in range(5):
        together = problem.client_scores(given, "test", threads=3)
        assert np.array_equal(alone.loss, together.loss)
    assert torch.equal(torch.get_rng_state(), before)


def test_no_labels_no_accuracy():
    data = [(x, x[:, 1]) for x, _ in rows(TRAINED)]
    problem = af.problems.torch(lambda: nn.Linear(5, 1), "mse", data, held_out={"test": data})
    scores = problem.client_scores(problem.init(0), "test")
    assert scores.accuracy is None
    np.testing.assert_array_equal(scores.loss, problem.client_losses(problem.init(0)))
    assert "test_accuracy" not in problem.evaluate(problem.init(0))


def test_rows_may_be_given_in_three_ways():
    by_pairs = held_out_problem()
    test = rows(TEST, 2)
    owners = np.repeat(np.arange(4), TEST)
    x, y = (np.concatenate([pair[part] for pair in test]) for part in (0, 1))
    packed = TensorClients.pack(x, y, owners, 4)
    held_out = {"test": packed, "validation": TensorClients.from_pairs(rows(VALIDATION, 1))}
    by_clients = held_out_problem(held_out=held_out)
    empty = [pair if len(pair[1]) else ([], []) for pair in rows(TEST, 2)]
    by_lists = held_out_problem(held_out={"test": empty, "validation": rows(VALIDATION, 1)})
    assert by_pairs.fingerprint() == by_clients.fingerprint() == by_lists.fingerprint()
    assert by_clients.parts == by_pairs.parts


def test_data_dealt_by_an_experiment_fit(small):
    svm = af.presets.svm(num_clients=4)
    linear = small(data=svm.data, model=svm.model, holdout=Holdout()).problem()
    features = linear.clients.num_features
    problem = af.problems.torch(
        lambda: nn.Linear(features, 2).double(), "cross_entropy", linear.clients, held_out=linear.held_out
    )
    assert problem.parts == linear.parts
    assert (
        problem.client_scores(problem.init(0), "test").rows.tolist()
        == np.diff(linear.held_out["test"].offsets).tolist()
    )


def test_the_fingerprint_sees_what_is_held_out():
    without = af.problems.torch(perceptron, "cross_entropy", rows(TRAINED))
    others = [
        held_out_problem(),
        held_out_problem(held_out={"test": rows(TEST, 2)}),
        held_out_problem(held_out={"validation": rows(TEST, 2)}),
        held_out_problem(held_out={"test": rows(TEST, 3)}),
        held_out_problem(held_out=None, test=rows((9,), 3)[0]),
        held_out_problem(held_out=None, test=rows((9,), 4)[0]),
    ]
    assert len({problem.fingerprint() for problem in [without, *others]}) == 7
    assert held_out_problem(held_out={}).fingerprint() == without.fingerprint()
    copy = pickle.loads(pickle.dumps(others[0]))
    assert copy.fingerprint() == others[0].fingerprint()
    assert copy.parts == others[0].parts


def test_test_rows_of_nobody_are_no_part_of_clients():
    problem = held_out_problem(held_out={"validation": rows(VALIDATION, 1)}, test=rows((20,), 7)[0])
    assert problem.parts == ("training", "validation")
    seen = problem.evaluate(problem.init(0))
    loss, right = naive(problem, problem.init(0), *rows((20,), 7)[0])
    assert seen["test_loss"] == pytest.approx(loss.mean(), rel=1e-6)
    assert seen["test_accuracy"] == pytest.approx(right.mean())
    with pytest.raises(ConfigError, match='part is "test"'):
        problem.client_scores(problem.init(0), "test")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"held_out": {"tset": rows(TEST)}}, 'held_out names "tset". Did you mean "test"'),
        ({"held_out": {"test": rows((3, 3))}}, "2 clients for test, but there are 4; give one entry per client"),
        ({"held_out": {"test": [(x[:, :4], y) for x, y in rows(TEST)]}}, r"A row of test has x of shape \(4,\)"),
        ({"held_out": {"test": [(x, x) for x, y in rows(TEST)]}}, r"A row of test has y of shape \(5,\)"),
        ({"held_out": {"test": [([], [])] * 4}}, "There are no rows"),
        ({"held_out": {"validation": [(x, y + 1) for x, y in rows(TEST)]}}, "y of validation holds class 2"),
        ({"test": (np.zeros((3, 5)), [0, 1, 5])}, "y of test holds class 5"),
        ({"test": (np.zeros((3, 4)), [0, 1, 1])}, r"A row of test has x of shape \(4,\)"),
        ({"held_out": {"test": rows(TEST)}, "test": rows((3,))[0]}, "Both test and held_out give rows to test on"),
    ],
)
def test_what_does_not_fit_is_refused(how, says):
    with pytest.raises((ConfigError, DataError), match=says):
        held_out_problem(**{"held_out": None, **how})


def test_tokens_are_not_rounded():
    embed = lambda: nn.Sequential(nn.Embedding(4, 3), nn.Flatten(), nn.Linear(6, 2))  # noqa: E731
    clients = [(np.array([[0, 1], [2, 3]]), [0, 1])]
    with pytest.raises(DataError, match="whole numbers, but others float64"):
        af.problems.torch(embed, "cross_entropy", clients, held_out={"test": [(np.array([[0.5, 1]]), [0])]})
    problem = held_out_problem(held_out={"test": [(np.rint(x).astype(int), y) for x, y in rows(TEST, 2)]})
    assert np.isfinite(problem.evaluate(problem.init(0))["test_loss"])


def test_wrong_calls_are_refused():
    problem = held_out_problem()
    with pytest.raises(DataError, match="3 models for 4 clients"):
        problem.client_scores(np.zeros((3, problem.num_params)), "test")
    with pytest.raises(ConfigError, match=r'part is "tests"\. Did you mean "test"'):
        problem.client_scores(problem.init(0), "tests")


# ---- runs ------------------------------------------------------------------------------------------------------------


def experiment(strategy=None, rounds=12, **how):
    strategy = strategy or af.strategies.FedBuff(concurrency=3, buffer_size=2, work=WORK)
    return af.Experiment(num_clients=4, strategy=strategy, budget=af.Budget(rounds=rounds), **how)


def named_problem():
    """The last client obeys a law of its own; alone it would be served better."""
    laws = (1.0, 1.0, 1.0, -1.0)
    clients = TensorClients.from_pairs(rows((40, 40, 40, 40), 0, laws), names=["north", "east", "south", "odd"])
    return af.problems.torch(perceptron, "cross_entropy", clients, held_out={"test": rows((30, 30, 30, 30), 1, laws)})


def test_the_table_of_clients(tmp_path):
    problem = named_problem()
    run = af.run(experiment(rounds=40), problem=problem, out=tmp_path / "run.sqlite")
    table = run.clients
    assert table.part == "test"
    assert table["name"].tolist() == ["north", "east", "south", "odd"]
    scores = problem.client_scores(run.params, "test")
    np.testing.assert_array_equal(table["loss"], scores.loss)
    np.testing.assert_array_equal(table["accuracy"], scores.accuracy)
    assert table["worst"].tolist() == [False, False, False, True]
    assert table["gain"][3] < 0
    assert (table["alone_epochs"] > 0).all()
    loaded = af.load(tmp_path / "run.sqlite", problem=problem)
    np.testing.assert_array_equal(loaded.clients["alone"], table["alone"])
    assert "odd" in str(table)


def test_the_report_page_of_a_torch_run(tmp_path, monkeypatch):
    pytest.importorskip("plotly")
    from asyncfed.report.page.run_page import RunDescription, write_run_page

    monkeypatch.setattr("asyncfed.report.page.html_page._draw_png", lambda figure: b"")
    run = af.run(experiment(), problem=named_problem())
    told = RunDescription(run, af.to_toml(run.experiment), "", run.sha256, run.known_clients)
    text = write_run_page(tmp_path / "page.html", [told]).read_text()
    assert "south" in text


def test_a_run_stops_by_the_validation_loss(tmp_path):
    rng = np.random.default_rng(3)
    noise = [(rng.normal(size=(8, 5)).astype(np.float32), rng.integers(0, 2, 8)) for _ in range(4)]
    unseen = [(rng.normal(size=(40, 5)).astype(np.float32), rng.integers(0, 2, 40)) for _ in range(4)]
    problem = af.problems.torch(perceptron, "cross_entropy", noise, held_out={"validation": unseen})
    asked = experiment(rounds=300, stopping=af.Stopping(patience=5))
    run = af.run(asked, problem=problem, out=tmp_path / "run.sqlite")
    assert run.reason.startswith("stopped early: validation_loss has not improved in 5 evaluations")
    losses = run.evaluations["validation_loss"]
    assert len(losses) < 300
    assert losses.argmin() == len(losses) - 6
    assert af.verify(tmp_path / "run.sqlite", problem=problem).ok
    target = af.run(experiment(rounds=300, stopping=af.Stopping("accuracy", target=0.8)), problem=problem)
    assert target.evaluations["accuracy"][-1] >= 0.8 > target.evaluations["accuracy"][:-1].max()


def test_a_rule_about_rows_that_are_not_there_is_refused():
    problem = af.problems.torch(perceptron, "cross_entropy", rows(TRAINED))
    with pytest.raises(ConfigError, match="Hold rows out, or stop by another metric"):
        af.run(experiment(stopping=af.Stopping(patience=5)), problem=problem)


@pytest.mark.slow
@pytest.mark.parametrize("model_fn", [perceptron, curved])
def test_fair_selection_and_inverse_participation(model_fn):
    problem = held_out_problem(model_fn)
    how = {"concurrency": 2, "mixing": 0.3, "work": WORK}
    delays = af.delays.stragglers(share=0.25, slowness=8.0)
    asked = {
        "plain": af.strategies.FedAsync(**how),
        "evened": af.strategies.FedAsync(**how, weighting="inverse_participation"),
        "fair": af.strategies.FedAsync(**how, sampler=Fair()),
    }
    runs = {
        name: af.run(experiment(strategy, rounds=60, delays=delays), problem=problem)
        for name, strategy in asked.items()
    }
    for run in runs.values():
        assert run.verdict == "finished"
        assert run.evaluations["test_loss"][-1] < run.evaluations["test_loss"][0]
    spread = {name: np.ptp(run.clients["weight"]) for name, run in runs.items()}
    assert spread["evened"] < 0.7 * spread["plain"]
    assert runs["fair"].rounds["jain_index"][-1] > runs["plain"].rounds["jain_index"][-1]
    again = af.run(experiment(asked["evened"], rounds=60, delays=delays), problem=problem, threads=2)
    assert again.sha256 == runs["evened"].sha256
