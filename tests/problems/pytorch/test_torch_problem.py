"""PyTorch problems: the interface, the flat vector, and agreement with the compiled kernel and with torch itself."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, DataError
from asyncfed.problems import Linear, TensorClients
from asyncfed.problems.protocol import Jobs
from asyncfed.testing import check_problem

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn
F = torch.nn.functional


def pairs(sizes=(7, 20, 33, 1), d=5, classes=3, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(n, d)).astype(dtype), rng.integers(0, classes, n)) for n in sizes]


def images(sizes=(9, 16, 5), seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(n, 1, 8, 8)).astype(np.float32), rng.integers(0, 3, n)) for n in sizes]


def perceptron():
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))


def with_dropout():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3))


def convolutional():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))


def normalised():
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 4, batch_first=True)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Tied(nn.Module):
    """Tokens in, a class per token out; the embedding is also the last layer, and is counted once."""

    def __init__(self):
        super().__init__()
        self.embedding, self.inner, self.last = nn.Embedding(7, 6), nn.Linear(6, 6), nn.Linear(6, 7, bias=False)
        self.last.weight = self.embedding.weight

    def forward(self, tokens):
        return self.last(self.inner(self.embedding(tokens)).tanh()).transpose(1, 2)


def tokens(sizes=(9, 14)):
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 7, (n, 5)) for n in sizes]
    return [(x, (x + 1) % 7) for x in rows]


def sequences(sizes=(6, 11), seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(n, 7, 2)).astype(np.float32), rng.normal(size=n).astype(np.float32)) for n in sizes]


def zero_linear(d):
    def make():
        module = nn.Linear(d, 1).double()
        nn.init.zeros_(module.weight)
        nn.init.zeros_(module.bias)
        return module

    return make


def half_square(outputs, targets):
    return 0.5 * (outputs - targets).square().mean()


CASES = {
    "stacked perceptron": lambda: af.problems.torch(perceptron, "cross_entropy", pairs()),
    "perceptron one by one": lambda: af.problems.torch(perceptron, "cross_entropy", pairs(), together=False),
    "double precision": lambda: af.problems.torch(lambda: perceptron().double(), nn.CrossEntropyLoss(), pairs()),
    "dropout": lambda: af.problems.torch(with_dropout, F.cross_entropy, pairs()),
    "convolutions": lambda: af.problems.torch(convolutional, "cross_entropy", images()),
    "tied tokens": lambda: af.problems.torch(Tied, "cross_entropy", tokens()),
    "recurrent": lambda: af.problems.torch(Recurrent, "mse", sequences()),
    "a loss of one's own": lambda: af.problems.torch(Recurrent, half_square, sequences()),
    "regression": lambda: af.problems.torch(lambda: nn.Linear(7, 1), "mse", [(x[:, :, 0], y) for x, y in sequences()]),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_a_problem(name):
    problem = CASES[name]()
    check_problem(problem)
    assert problem.together == (name in ("stacked perceptron", "double precision", "regression"))
    assert problem.optimum() is None


# ---- the same as others ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "work",
    [
        af.Work(epochs=3, batch_size=8, learning_rate=0.05, decay=0.5, proximal=0.2),
        af.Work(epochs=40, batch_size=8, learning_rate=0.05, patience=1),
        af.Work(steps=7, batch_size=8, learning_rate=0.05, decay=0.5, proximal=0.2),
        af.Work(steps=50, batch_size=8, learning_rate=0.05, patience=1),
    ],
)
@pytest.mark.parametrize("corrected", [False, True])
def test_a_linear_module_follows_the_compiled_kernel(work, together, corrected, small):
    """The same rows in the same order: not only the end but the whole path agrees."""
    clients = small(data=af.data.PaperRegression(num_samples=90)).clients()
    kernel = Linear(clients, "mse")
    module = af.problems.torch(zero_linear(clients.num_features), "mse", clients, together=together)
    starts, corrections = np.random.default_rng(0).normal(size=(2, 3, kernel.num_params))
    counts = np.zeros((2, 3), np.int64)
    jobs = Jobs(starts, [0, 3, 1], [work] * 3, [5, 2**63 + 11, 7], corrections=corrections if corrected else None)
    ours, theirs = (
        problem.local_train_many(jobs._replace(steps_done=counted))
        for problem, counted in zip((module, kernel), counts, strict=True)
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    assert counts[0].tolist() == counts[1].tolist()
    ours, theirs = (p.local_path_moments(jobs) for p in (module, kernel))
    assert ours[0].tolist() == counts[0].tolist()
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("loss", ["mse", half_square])
def test_a_run_of_a_linear_module_is_that_of_the_kernel(small, loss):
    experiment = small(strategy=af.strategies.FedBuff(concurrency=3, buffer_size=2, work=af.Work(batch_size=4)))
    clients = experiment.clients()
    module = af.problems.torch(zero_linear(clients.num_features), loss, clients)
    kernel = Linear(clients, "mse" if loss == "mse" else "least_squares")
    ours, theirs = (af.run(experiment, problem=p) for p in (module, kernel))
    np.testing.assert_allclose(ours.params, theirs.params, atol=1e-5)
    np.testing.assert_allclose(ours.evaluations["objective"], theirs.evaluations["objective"], atol=1e-5)
    assert ours.sha256["journal"] == theirs.sha256["journal"]


def plain_torch(module, x, y, orders, work, start=None):
    optimiser = torch.optim.SGD(module.parameters(), lr=work.learning_rate, momentum=work.momentum or 0.0)
    first = [p.detach().clone() for p in module.parameters()]
    module.train()
    for epoch, order in enumerate(orders):
        optimiser.param_groups[0]["lr"] = work.learning_rate / (epoch + 1) ** work.decay
        for rows in torch.tensor(order).split(work.batch_size):
            optimiser.zero_grad()
            gap = sum((p - q).square().sum() for p, q in zip(module.parameters(), first, strict=True))
            (F.cross_entropy(module(x[rows]), y[rows]) + work.proximal / 2 * gap).backward()
            optimiser.step()
    return module


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "make", [perceptron, lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))]
)
def test_training_is_that_of_torchs_own_optimiser(make, together):
    from asyncfed.kernels.row_orders import epoch_orders

    problem = af.problems.torch(make, "cross_entropy", pairs((30, 12)), together=together)
    work = af.Work(epochs=3, batch_size=8, learning_rate=0.1, decay=0.5, proximal=0.1, momentum=0.9)
    start, (x, y) = problem.init(4), pairs((30, 12))[0]
    by_torch = plain_torch(problem.module(start), torch.tensor(x), torch.tensor(y), epoch_orders(9, 30, 3), work)
    ours = problem.module(problem.local_train(start, 0, work, 9))
    for name, value in by_torch.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(ours.state_dict()[name], value, atol=2e-6, rtol=1e-5)


def test_linear_problems_refuse_momentum(small):
    experiment = small(strategy=af.strategies.AFL(concurrency=2, work=af.Work(momentum=0.5)))
    with pytest.raises(ConfigError, match=r"momentum is 0.5.*af.problems.torch_problem"):
        af.run(experiment)


def test_measurements_are_the_naive_ones():
    data, test = pairs(), pairs((50,), seed=9)[0]
    problem = af.problems.torch(perceptron, "cross_entropy", data, test=test)
    params = problem.init(1)
    module = problem.module(params)

    def naive(x, y):
        outputs = module(torch.tensor(x))
        right = (outputs.argmax(1) == torch.tensor(y)).double()
        return F.cross_entropy(outputs, torch.tensor(y), reduction="none").double().detach().numpy(), right.numpy()

    losses, right = zip(*(naive(x, y) for x, y in data), strict=True)
    expected = {
        "objective": np.mean([part.mean() for part in losses]),
        "pooled_loss": np.concatenate(losses).mean(),
        "accuracy": np.mean([part.mean() for part in right]),
        "pooled_accuracy": np.concatenate(right).mean(),
        "test_loss": naive(*test)[0].mean(),
        "test_accuracy": naive(*test)[1].mean(),
    }
    assert problem.evaluate(params) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(problem.client_losses(params), [part.mean() for part in losses], rtol=1e-6)


def test_many_pieces_measure_like_one(monkeypatch):
    from asyncfed.problems.pytorch import module_evaluation as torch_measure

    problem = af.problems.torch(perceptron, "cross_entropy", pairs())
    whole = problem.evaluate(problem.init(0))
    monkeypatch.setattr(torch_measure, "_ROWS_AT_ONCE", 10)
    pieces = af.problems.torch(perceptron, "cross_entropy", pairs())
    params = pieces.init(0)
    assert pieces.evaluate(params, threads=2) == pytest.approx(whole, rel=1e-6)
    assert pieces.client_loss(params, 2) == pytest.approx(pieces.client_losses(params)[2], rel=1e-6)
    np.testing.assert_allclose(pieces.gradient(params, 2), problem.gradient(params, 2), atol=1e-6)


def test_metrics_of_ones_own():
    distance = {"distance_off": lambda outputs, targets: (outputs - targets).abs()[:, 0]}
    problem = af.problems.torch(Recurrent, "mse", sequences(), metrics=distance)
    assert problem.evaluate(problem.init(0))["distance_off"] > 0
    bad = af.problems.torch(Recurrent, "mse", sequences(), metrics={"bad": lambda o, t: o.mean()})
    with pytest.raises(ConfigError, match="one number per row"):
        bad.evaluate(bad.init(0))


# ---- the flat vector -------------------------------------------------------------------------------------------------


def test_the_vector_is_parameters_then_buffers():
    problem = af.problems.torch(normalised, "cross_entropy", images())
    module = normalised()
    params = sum(p.numel() for p in module.parameters())
    assert problem.num_params == params + 4  # running mean and variance of two channels
    trained = problem.local_train(problem.init(0), 1, af.Work(batch_size=4, epochs=2), 3)
    assert not np.array_equal(trained[params:], problem.init(0)[params:])
    again = problem.local_train(problem.init(0), 1, af.Work(batch_size=4, epochs=2), 3)
    assert np.array_equal(trained, again)
    assert not problem.gradient(trained, 1)[params:].any()


def test_a_model_with_running_statistics_learns_in_a_run():
    problem = af.problems.torch(normalised, "cross_entropy", images((40, 40, 40)))
    work = af.Work(epochs=2, batch_size=8, learning_rate=0.05)
    experiment = af.Experiment(
        num_clients=3, strategy=af.strategies.FedAvg(cohort_size=3, work=work), budget=af.Budget(rounds=15)
    )
    losses = af.run(experiment, problem=problem).evaluations["objective"]
    assert losses[-1] < 0.8 * losses[0]


def test_a_cumulative_average_starts_anew_in_each_ticket():
    """`momentum=None` makes batch norm count its batches in a buffer of whole numbers."""
    make = lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 3))  # noqa: E731
    problem = af.problems.torch(make, "cross_entropy", pairs((20, 20)))
    work, start = af.Work(batch_size=5), problem.init(0)
    first = problem.local_train(start, 0, work, 1)
    problem.local_train(start, 1, work, 2)
    assert np.array_equal(first, problem.local_train(start, 0, work, 1))


def test_module_and_export_hold_the_same_numbers(tmp_path):
    from safetensors.torch import load_file

    problem = af.problems.torch(normalised, "cross_entropy", images())
    params = problem.local_train(problem.init(0), 0, af.Work(), 1)
    state = problem.module(params).state_dict()
    floats = [v.reshape(-1) for v in state.values() if v.is_floating_point()]
    assert sorted(torch.cat(floats).tolist()) == sorted(params.tolist())
    problem.export(params, tmp_path / "model.safetensors")
    loaded = load_file(tmp_path / "model.safetensors")
    assert loaded.keys() == state.keys()
    assert all(torch.equal(loaded[name], value) for name, value in state.items())


def test_first_params_follow_the_seed_and_the_client():
    problem = af.problems.torch(perceptron, "cross_entropy", pairs())
    before = torch.get_rng_state()
    draws = [problem.init(0), problem.init(1), problem.init(0, client=0), problem.init(0, client=1)]
    assert len({draw.tobytes() for draw in draws}) == 4
    assert np.array_equal(problem.init(0), draws[0])
    assert torch.equal(torch.get_rng_state(), before)


def test_frozen_parameters_stay():
    def make():
        module = perceptron()
        module[0].weight.requires_grad_(False)
        return module

    problem = af.problems.torch(make, "cross_entropy", pairs())
    assert not problem.together
    start = problem.init(0)
    trained = problem.local_train(start, 2, af.Work(proximal=0.1, momentum=0.5), 1)
    assert np.array_equal(start[:40], trained[:40])
    assert not np.array_equal(start[40:], trained[40:])


# ---- what it is called -----------------------------------------------------------------------------------------------


def test_the_fingerprint_sees_data_model_loss_and_code():
    def other_code():
        return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))

    base = af.problems.torch(perceptron, "cross_entropy", pairs())
    others = [
        af.problems.torch(perceptron, "cross_entropy", pairs(seed=1)),
        af.problems.torch(with_dropout, "cross_entropy", pairs()),
        af.problems.torch(perceptron, lambda o, t: F.cross_entropy(o, t), pairs()),
        af.problems.torch(perceptron, lambda o, t: 2 * F.cross_entropy(o, t), pairs()),
        af.problems.torch(other_code, "cross_entropy", pairs()),
        af.problems.torch(perceptron, "cross_entropy", pairs(), together=False),
    ]
    prints = {problem.fingerprint() for problem in [base, *others]}
    assert len(prints) == 1 + len(others)
    assert af.problems.torch(perceptron, "cross_entropy", pairs()).fingerprint() == base.fingerprint()


def test_a_copy_for_another_process_is_the_same_problem():
    problem = af.problems.torch(perceptron, "cross_entropy", pairs(), test=pairs((4,))[0])
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.fingerprint() == problem.fingerprint()
    assert copy.evaluate(problem.init(0)) == problem.evaluate(problem.init(0))


def test_importing_asyncfed_does_not_import_torch():
    code = "import sys, asyncfed; assert 'torch' not in sys.modules and 'safetensors' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_torch_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import asyncfed as af\n"
        "try: af.problems.torch(None, 'mse', [])\n"
        "except af.errors.ConfigError as error: assert \"pip install 'asyncfed[torch]'\" in str(error), error\n"
        "else: raise AssertionError('no error')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- what it refuses -------------------------------------------------------------------------------------------------


def whole_numbers():
    module = nn.Linear(5, 3)
    module.weight = nn.Parameter(module.weight.double())
    return module


@pytest.mark.parametrize(
    ("model_fn", "loss_fn", "clients", "says"),
    [
        (perceptron, "cross_entrpy", pairs(), 'Did you mean "cross_entropy"'),
        (lambda: 3, "mse", pairs(), "gives a int; it must give a torch.nn.Module"),
        (nn.Identity, "mse", pairs(), "no parameters"),
        (whole_numbers, "mse", pairs(), "all must be float32"),
        (perceptron, "cross_entropy", pairs(classes=4), "class 3.*at least 4 outputs"),
        (perceptron, "mse", pairs(), r"shape \(3,\) for a row, but its target in y has shape \(\)"),
        (perceptron, lambda o, t: o, pairs(), "one number, the mean over the rows, or one number per row"),
        (perceptron, "cross_entropy", [], "There are no clients"),
        (perceptron, "cross_entropy", pairs((4, 0, 3)), "Client 1 has no rows; leave it out"),
        (perceptron, "cross_entropy", [(np.zeros((2, 5)), [0.5, 1])], "y holds 0.5; this loss needs classes"),
        (perceptron, "cross_entropy", [(np.zeros((2, 5)), [0, -1])], "y holds -1; this loss needs classes"),
    ],
)
def test_what_cannot_be_is_refused(model_fn, loss_fn, clients, says):
    with pytest.raises((ConfigError, DataError), match=says):
        af.problems.torch(model_fn, loss_fn, clients)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: TensorClients.from_pairs([(np.zeros((2, 3)), [1.0])]), "Client 0 has x of shape"),
        (lambda: TensorClients.from_pairs([(np.zeros((2, 3)), [1, 2]), (np.zeros((1, 4)), [1])]), "client 1"),
        (lambda: TensorClients.from_pairs([(np.zeros((0, 3)), np.zeros(0))]), "There are no rows"),
        (lambda: TensorClients.from_pairs(pairs((2, 3)), names=["north"]), "names has 1 entries; the 2 clients"),
        (lambda: TensorClients(np.zeros((3, 2)), np.zeros(3), np.array([0, 4, 3])), "offsets falls at client 1"),
        (lambda: TensorClients.from_pairs([(np.full((1, 3), np.nan), [1])]), "not finite"),
        (lambda: TensorClients.from_pairs([(np.array([["a"]]), [1])]), "must hold numbers"),
        (lambda: TensorClients.pack(np.zeros((3, 2)), np.zeros(3), [0, 1, 2], 2), "client 2, but num_clients is 2"),
        (lambda: TensorClients.pack(np.zeros((0, 2)), np.zeros(0), [], 2), "for each of the 0 rows"),
    ],
)
def test_impossible_clients_are_refused(make, says):
    with pytest.raises(DataError, match=says):
        make()


def test_modules_that_replace_their_buffers_are_refused():
    class Replacing(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 3)
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen = self.seen + 1
            return self.layer(x)

    with pytest.raises(ConfigError, match="assigns a new tensor to `seen`"):
        af.problems.torch(Replacing, "cross_entropy", pairs())


def test_wrong_calls_are_refused():
    problem = af.problems.torch(perceptron, "cross_entropy", pairs())
    with pytest.raises(ConfigError, match="no client 4"):
        problem.local_train(problem.init(0), 4, af.Work(), 0)
    with pytest.raises(DataError, match="this module has 75 numbers"):
        problem.evaluate(np.zeros(3))
    with pytest.raises(ConfigError, match="1 starts, 2 clients"):
        problem.local_train_many(Jobs(problem.init(0)[None], [0, 1], [af.Work()], [0]))
    with pytest.raises(ConfigError, match='metrics names "acuracy"'):
        af.problems.torch(perceptron, "cross_entropy", pairs(), metrics=["acuracy"])
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no CUDA device"):
            af.problems.torch(perceptron, "cross_entropy", pairs(), device="cuda")


def test_an_error_in_training_says_whose_batch_it_was():
    make = lambda: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))  # noqa: E731
    problem = af.problems.torch(make, "cross_entropy", pairs((9, 8)))
    with pytest.raises(ValueError) as raised:
        problem.local_train(problem.init(0), 0, af.Work(batch_size=8), 0)
    assert "a client of 9 rows, its last batch of 1" in raised.value.__notes__[0]


# ---- shards ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stacked perceptron", "recurrent"])
def test_a_shard_trains_to_the_bits_of_the_whole_problem_and_holds_only_its_own_rows(name):
    problem = CASES[name]()
    shard = problem.shard(1)
    start, work = problem.init(0), af.Work(epochs=2, batch_size=4, learning_rate=0.05)
    assert shard.num_examples == problem.num_examples[1]
    assert shard.train(start, work, 9).tobytes() == problem.local_train(start, 1, work, 9).tobytes()
    x, first = problem.clients.x, problem.clients.offsets
    assert sum(array.nbytes for array in shard._given[2:4]) <= x[first[1] : first[2]].nbytes * 2


def mean_cross_entropy(outputs, targets):
    return F.cross_entropy(outputs, targets)


@pytest.mark.parametrize("loss", ["cross_entropy", mean_cross_entropy])
def test_a_client_alone_measures_the_same_bits(loss):
    """Whichever place its rows have in memory: decisions of a live run are made by these numbers."""
    problem = af.problems.torch(perceptron, loss, pairs(sizes=(3, 17, 30, 41)))
    params = problem.init(1, how="torch")
    for client in range(4):
        shard = problem.shard(client)
        assert problem.client_loss(params, client) == shard.loss(params)
        if loss == "cross_entropy":
            assert problem.client_row_losses(params, client).tobytes() == shard.row_losses(params).tobytes()
        else:
            with pytest.raises(ConfigError, match="loss_fn gives only their mean"):
                problem.client_row_losses(params, client)
