"""The same bytes alone, in any company, on any number of threads, after a kill, and in another process."""

import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.record import UNSET, replace
from asyncfed.kernels.row_orders import epoch_orders
from asyncfed.problems.protocol import Jobs
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn

WIDTHS = [1, 2, 3, 8, 10, 16, 17, 31, 33, 64, 100]


@st.composite
def perceptrons(draw):
    widths = draw(st.lists(st.sampled_from(WIDTHS), min_size=2, max_size=4))
    bias, double = draw(st.booleans()), draw(st.booleans())

    def make():
        layers = [part for d, k in pairwise(widths) for part in (nn.Linear(d, k, bias), nn.ReLU())]
        module = nn.Sequential(*layers[:-1])
        return module.double() if double else module

    return make, widths


def works(draw_seed, count, momentum):
    """About a third patient, and asked for so many epochs that most of those end early; about a third by steps."""
    rng = np.random.default_rng(draw_seed)
    patient, by_steps = rng.random((2, count)) < 0.3
    return [
        af.Work(
            epochs=15 if patient[place] else int(rng.integers(1, 4)),
            batch_size=int(rng.choice([1, 3, 8, 8, 8, 20])),
            learning_rate=float(rng.uniform(0.001, 0.05)),
            decay=float(rng.choice([0.0, 0.5])),
            proximal=float(rng.choice([0.0, 0.3])),
            momentum=momentum,
            patience=int(rng.integers(1, 3)) if patient[place] else UNSET,
            steps=int(rng.integers(1, 12)) if by_steps[place] else UNSET,
        )
        for place in range(count)
    ]


@pytest.fixture(autouse=True, scope="module")
def threads_for_short_calls_too():
    from asyncfed.kernels import threads

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "SMALL", 0)
        yield


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    model=perceptrons(),
    loss=st.sampled_from(["cross_entropy", "mse"]),
    momentum=st.sampled_from([0.0, 0.9, None]),
    seed=st.integers(0, 2**32),
)
def test_company_changes_no_byte(model, loss, momentum, seed):
    """With momentum, without, and, for None, with corrections."""
    (make, widths), rng = model, np.random.default_rng(seed)
    sizes = rng.integers(1, 40, rng.integers(2, 12))
    outputs = widths[-1]
    targets = (
        (lambda n: rng.integers(0, outputs, n))
        if loss == "cross_entropy"
        else (lambda n: rng.normal(size=(n, outputs)))
    )
    clients = [(rng.normal(size=(n, widths[0])), targets(n)) for n in sizes]
    problem = af.problems.torch(make, loss, clients)
    assert problem.together
    count = len(sizes)
    asked, keys = works(seed, count, momentum or 0.0), [int(key) for key in rng.integers(0, 2**63, count)]
    starts = np.stack([problem.init(place) for place in range(count)])
    corrections = 0.1 * rng.normal(size=starts.shape) if momentum is None else None
    every = Jobs(starts, list(range(count)), asked, keys, corrections=corrections)

    def train_one(problem, place):
        done = np.zeros(1, np.int64)
        return problem.local_train_many(every.part(place, place + 1)._replace(steps_done=done))[0], int(done[0])

    alone, done = zip(*(train_one(problem, place) for place in range(count)), strict=True)
    by_autograd = af.problems.torch(make, loss, clients, together=False)
    for place in range(count):
        reference, steps = train_one(by_autograd, place)
        assert steps == done[place] <= asked[place].count_steps(int(sizes[place]))
        shard, counted = problem.shard(place), np.zeros(1, np.int64)
        own = shard.train(
            starts[place], asked[place], keys[place], None if corrections is None else corrections[place], counted
        )
        assert np.array_equal(own, alone[place], equal_nan=True)
        assert counted[0] == done[place]
        tolerance, size = 1e-10 if problem.dtype == np.float64 else 2e-5, float(np.abs(reference).max())
        if size < 100:  # not of trainings that diverge: there rounding grows with every step
            np.testing.assert_allclose(alone[place], reference, atol=tolerance * max(1.0, size))
    for threads in (1, 2, 1):
        chosen = rng.permutation(count)[: rng.integers(1, count + 1)].tolist()
        counts, theirs = np.zeros(len(chosen), np.int64), None if corrections is None else corrections[chosen]
        company = [asked[c] for c in chosen], [keys[c] for c in chosen]
        jobs = Jobs(starts[chosen], chosen, *company, corrections=theirs, steps_done=counts)
        together = problem.local_train_many(jobs, threads)
        for place, client in enumerate(chosen):
            assert np.array_equal(together[place], alone[client], equal_nan=True)
        assert counts.tolist() == [done[client] for client in chosen]


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_training_that_diverged_leaves_nothing_behind_for_the_next(loss, momentum):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20) if loss == "cross_entropy" else rng.normal(size=(20, 2))
    clients = [(1e15 * rng.normal(size=(20, 31)), y), (rng.normal(size=(20, 31)), y)]

    def make():
        return torch.nn.Sequential(torch.nn.Linear(31, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))

    used, fresh = (af.problems.torch(make, loss, clients) for _ in range(2))
    start, work = used.init(0), af.Work(epochs=3, batch_size=8, learning_rate=0.05, momentum=momentum)
    wild = af.Work(epochs=30, batch_size=8, learning_rate=1e9, momentum=momentum)
    assert used.together
    assert not np.isfinite(used.local_train(start, 0, wild, 5)).all()
    ours, theirs = (problem.local_train(start, 1, work, 7) for problem in (used, fresh))
    assert np.isfinite(theirs).all()
    assert ours.tobytes() == theirs.tobytes()


# ---- patient clients -------------------------------------------------------------------------------------------------

SIZES = (40, 24, 17, 31, 8, 40, 36, 29)
PATIENT = af.Work(epochs=25, batch_size=8, learning_rate=0.8, decay=0.1, momentum=0.5, patience=2)


def patient_problem(make=None, together=True):
    rng = np.random.default_rng(1)
    rows = [(rng.normal(size=(n, 10)), rng.integers(0, 3, n)) for n in SIZES]
    make = make or (lambda: nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).double())
    return af.problems.torch(make, "cross_entropy", rows, together=together), rows


def test_a_patient_client_ends_when_the_loss_of_its_epochs_has_stopped_falling():
    """By torch's own optimiser, and the rule read backwards from the list of all losses."""
    problem, rows = patient_problem()
    start = problem.init(0)
    ended = []
    for client, (x, y) in enumerate(rows):
        module, losses = problem.module(start).train(), []
        optimiser = torch.optim.SGD(module.parameters(), lr=0.8, momentum=0.5)
        for epoch, order in enumerate(epoch_orders(client + 5, len(y), 25)):
            optimiser.param_groups[0]["lr"] = 0.8 / (epoch + 1) ** 0.1
            losses.append(0.0)
            for chosen in torch.tensor(order).split(8):
                optimiser.zero_grad()
                each = nn.functional.cross_entropy(
                    module(torch.tensor(x)[chosen]), torch.tensor(y)[chosen], reduction="none"
                )
                losses[-1] += each.sum().item()
                each.mean().backward()
                optimiser.step()
            if len(losses) > 2 and min(losses[-2:]) >= min(losses[:-2]):
                break
        steps, _, _ = problem.local_path_moments(Jobs(start[None], [client], [PATIENT], [client + 5]))
        assert steps[0] == len(losses) * -(-len(y) // min(8, len(y)))
        by_torch = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy()
        np.testing.assert_allclose(problem.local_train(start, client, PATIENT, client + 5), by_torch, atol=1e-9)
        ended.append(len(losses))
    assert min(ended) < 25
    assert len(set(ended)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("drops", [False, True])
def test_patience_only_leaves_epochs_out(together, drops):
    """A patient training is that of as many epochs as it took, to the last bit: its end, its steps and its path."""
    make = (lambda: nn.Sequential(nn.Linear(10, 20), nn.Dropout(0.3), nn.Linear(20, 3)).double()) if drops else None
    problem, _ = patient_problem(make, together)
    one_by_one, _ = patient_problem(make, together=False)
    count = len(SIZES)
    clients, keys = list(range(count)), [3 * client + 1 for client in range(count)]
    starts = np.stack([problem.init(client) for client in clients])
    patient = Jobs(starts, clients, [PATIENT] * count, keys)
    steps, sums, squares = problem.local_path_moments(patient, threads=2)
    trained = problem.local_train_many(patient, threads=2)
    epochs = [int(steps[c]) // -(-SIZES[c] // min(8, SIZES[c])) for c in clients]
    assert min(epochs) < 25
    works = [af.Work(epochs=e, batch_size=8, learning_rate=0.8, decay=0.1, momentum=0.5) for e in epochs]
    plain = Jobs(starts, clients, works, keys)
    for ours, theirs in zip((steps, sums, squares), one_by_one.local_path_moments(plain), strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(trained, one_by_one.local_train_many(plain))


@pytest.mark.slow
def test_patient_and_other_clients_in_one_call_do_not_see_each_other():
    problem, _ = patient_problem()
    assert problem.together
    count = len(SIZES)
    asked = [PATIENT if client % 3 else replace(PATIENT, patience=UNSET) for client in range(count)]
    clients, keys = list(range(count)), [7 + client for client in range(count)]
    starts = np.stack([problem.init(client) for client in clients])
    alone = [problem.local_train(starts[c], c, asked[c], keys[c]) for c in clients]
    moments = [problem.local_path_moments(Jobs(starts[c][None], [c], [asked[c]], [keys[c]])) for c in clients]
    jobs = Jobs(starts, clients, asked, keys)
    for threads in (1, 2, 3):
        assert np.array_equal(problem.local_train_many(jobs, threads), alone)
        overwritten = problem.local_train_many(jobs._replace(starts=starts.copy(), overwrite=True), threads)
        assert np.array_equal(overwritten, alone)
        together = problem.local_path_moments(jobs, threads)
        for place, column in enumerate(together):
            assert np.array_equal(column, np.concatenate([own[place] for own in moments]))


# ---- whole runs ------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
import torch
from torch import nn
import asyncfed as af

MODELS = {
    "perceptron": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 21), nn.ReLU(), nn.Linear(21, 5)),
    "convolution": lambda: nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.Flatten(), nn.Linear(108, 5)
    ),
    "dropout": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 21), nn.Dropout(0.4), nn.Linear(21, 5)),
}


def problem(name):
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(n, 1, 8, 8)).astype("f4"), rng.integers(0, 5, n)) for n in (12, 20, 36, 28, 8, 17)]
    return af.problems.torch(MODELS[name], "cross_entropy", rows)


def experiment(updates, **how):
    work = af.Work(**{"epochs": 2, "batch_size": 4, "learning_rate": 0.05, "momentum": 0.5, **how})
    return af.Experiment(
        num_clients=6,
        strategy=af.strategies.FedBuff(concurrency=4, buffer_size=2, work=work),
        delays=af.delays.heavy_tailed(),
        budget=af.Budget(updates=updates),
        evaluation=af.Evaluation(every=10),
    )


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[4]))
    af.run(experiment(int(sys.argv[3])), problem=problem(sys.argv[1]), out=sys.argv[2], force=True,
           threads=int(sys.argv[4]), checkpoint_seconds=0.02)
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    path = tmp_path_factory.mktemp("story") / "story.py"
    path.write_text(SCRIPT)
    namespace = {"__name__": "story"}
    exec(compile(SCRIPT, str(path), "exec"), namespace)
    return path, namespace["problem"], namespace["experiment"]


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("perceptron", {}),
        ("convolution", {}),
        ("dropout", {}),
        ("perceptron", {"epochs": 12, "learning_rate": 0.4, "patience": 1}),
        ("dropout", {"epochs": 12, "learning_rate": 0.4, "patience": 2}),
    ],
)
def test_threads_and_stops_change_nothing(name, work, story, tmp_path):
    _, problem, experiment = story
    asked = experiment(40, **work)
    whole = af.run(asked, problem=problem(name), threads=1)
    torch.set_num_threads(2)
    assert af.run(asked, problem=problem(name), threads=2).sha256 == whole.sha256
    assert torch.get_num_threads() == 2
    if "patience" in work:
        unmoved = af.run(experiment(40, **{**work, "patience": 12}), problem=problem(name))
        assert unmoved.sha256["params"] != whole.sha256["params"], "no client ended early"
    path = tmp_path / "stopped.sqlite"
    stopped_after([7, 1, 12, 3], whole, asked, problem(name), path)
    assert af.resume(path, problem=problem(name), threads=2).sha256 == whole.sha256
    assert af.verify(path, problem=problem(name)).ok


def stopped_after(arrivals, whole, experiment, problem, path):
    """A file as an interrupted run leaves it, stopped after so many arrivals and taken up again several times."""
    delays = experiment.delays.bind(problem.num_clients, experiment.seed)
    journal = Journal.create(path, dict(whole.header) | {"verdict": "interrupted"})
    simulation = Simulation(problem, delays, experiment.plan(1), journal)
    for count in arrivals:
        simulation.advance(count)
        journal.commit(*simulation.checkpoint())
        journal.close()
        journal = Journal.open(path, write=True)
        checkpoint = journal.checkpoint()
        journal.rewind(checkpoint[0]["seq"])
        simulation = Simulation(problem, delays, experiment.plan(1), journal, checkpoint)
    journal.close()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "updates"), [("perceptron", 500), ("convolution", 300)])
def test_killed_and_resumed_in_another_process_the_model_is_the_same(name, updates, story, tmp_path):
    path, problem, experiment = story
    file = tmp_path / "killed.sqlite"
    process = subprocess.Popen([sys.executable, str(path), name, str(file), str(updates), "2"])
    try:
        wait_for_a_checkpoint(file, process)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    killed = af.load(file)
    assert killed.verdict == "interrupted"
    resumed = af.resume(file, problem=problem(name), threads=1)
    assert resumed.finished
    whole = af.run(experiment(updates), problem=problem(name), threads=2)
    assert resumed.sha256 == whole.sha256


def wait_for_a_checkpoint(file, process):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it could be killed"
        if file.exists():
            try:
                if af.load(file).journal.checkpoint() is not None:
                    return
            except af.errors.AsyncFedError:
                pass  # being made
        time.sleep(0.02)
    raise AssertionError("the run never wrote a checkpoint")
