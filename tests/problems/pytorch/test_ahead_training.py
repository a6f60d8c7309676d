"""Tickets that other threads train ahead: the same bits as alone, asked for in any order or never."""

import numpy as np
import pytest
from torch import nn

import asyncfed as af
from asyncfed.problems.protocol import TrainsAhead
from asyncfed.problems.pytorch import torch_problem
from asyncfed.problems.pytorch.ahead_training import FIRST_LINES, CompiledAhead, ModuleAhead
from asyncfed.runs.simulate import simulate

WORK = af.Work(epochs=2, batch_size=7, learning_rate=0.1, decay=0.5)


@pytest.fixture(autouse=True)
def every_ticket(monkeypatch):
    """However short it is."""
    monkeypatch.setattr(torch_problem, "_LEAST_COMPILED", 0)
    monkeypatch.setattr(torch_problem, "_LEAST_IN_TORCH", 0)


def perceptron():
    return nn.Sequential(nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 3))


def curved():
    return nn.Sequential(nn.Linear(12, 9), nn.Tanh(), nn.Linear(9, 3))


def dropping():
    return nn.Sequential(nn.Linear(12, 9), nn.Dropout(0.5), nn.Linear(9, 3))


def make_problem(model_fn, num_clients=6):
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 40, num_clients)
    return af.problems.torch_problem(
        model_fn, "cross_entropy", [(rng.normal(size=(n, 12)).astype("f4"), rng.integers(0, 3, n)) for n in sizes]
    )


@pytest.mark.parametrize("model_fn", [perceptron, curved])
@pytest.mark.parametrize("threads", [2, 4])
def test_each_ticket_has_the_bits_it_has_alone(model_fn, threads):
    problem = make_problem(model_fn)
    assert isinstance(problem, TrainsAhead)
    ahead = problem.train_ahead(threads)
    rng = np.random.default_rng(1)
    starts = [problem.init(seed) for seed in range(5)]
    waiting = {}
    for ticket in range(200):  # more at once than a table has lines at first
        work = af.replace(WORK, batch_size=int(rng.integers(1, 30)), momentum=0.5 * (ticket % 2))
        given = (starts[ticket % 5], int(rng.integers(6)), work, int(rng.integers(2**63)))
        assert ahead.begin(ticket, *given)
        waiting[ticket] = given
        while len(waiting) > (100 if ticket < 150 else 3):
            wanted = int(rng.choice(list(waiting)))
            assert ahead.result(wanted).tobytes() == problem.local_train(*waiting.pop(wanted)).tobytes()
    ahead.keep_only(())
    for start, seed in zip(starts, range(5), strict=True):
        assert np.array_equal(start, problem.init(seed)), "what a ticket starts from is left as it was"


def test_what_is_not_trained_ahead():
    assert make_problem(perceptron).train_ahead(1) is None
    assert make_problem(dropping).train_ahead(2) is None, "torch has one generator for all threads"
    for model_fn in (perceptron, curved):
        problem = make_problem(model_fn)
        patient = af.replace(WORK, patience=1)
        assert not problem.train_ahead(2).begin(0, problem.init(0), 0, patient, 1)


@pytest.mark.parametrize("model_fn", [perceptron, curved])
def test_short_tickets_are_trained_together(model_fn, monkeypatch):
    problem = make_problem(model_fn)
    cost = 3 * WORK.count_steps(int(problem.num_examples[0])) * 7 * problem.num_params
    for least, ahead in ((cost + 3, False), (cost, True)):
        monkeypatch.setattr(torch_problem, "_LEAST_COMPILED", least)
        monkeypatch.setattr(torch_problem, "_LEAST_IN_TORCH", least)
        assert problem.train_ahead(2).begin(0, problem.init(0), 0, WORK, 1) is ahead


@pytest.mark.parametrize("model_fn", [perceptron, curved])
def test_a_ticket_that_nobody_wants_any_more_makes_room(model_fn):
    problem = make_problem(model_fn)
    ahead = problem.train_ahead(2)
    start = problem.init(0)
    for ticket in range(5 * FIRST_LINES):
        assert ahead.begin(ticket, start, ticket % 6, WORK, ticket)
        if ticket % 20 == 0:
            ahead.keep_only({ticket})
    last = 5 * FIRST_LINES - 1
    assert np.array_equal(ahead.result(last), problem.local_train(start, last % 6, WORK, last))


def test_an_error_of_the_module_reaches_the_caller():
    class Fragile(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(12, 3)

        def forward(self, x):
            if self.training and len(x) == 7:
                raise RuntimeError("seven rows are too many")
            return self.layer(x)

    problem = make_problem(Fragile)
    ahead = problem.train_ahead(2)
    for ticket in range(3):
        ahead.begin(ticket, problem.init(0), 0, WORK, 1)
    for ticket in range(3):
        with pytest.raises(RuntimeError, match="seven rows"):
            ahead.result(ticket)


# ---- whole runs ------------------------------------------------------------------------------------------------------


def experiment(strategy, **how):
    some = {"delays": af.delays.heavy_tailed(), "budget": af.Budget(updates=50)}
    return af.Experiment(num_clients=6, strategy=strategy, **{**some, **how})


EXPERIMENTS = {
    "buffered": experiment(af.strategies.FedBuff(concurrency=4, buffer_size=2, work=WORK)),
    "in rounds": experiment(af.strategies.FedAvg(cohort_size=4, work=WORK)),
    "lossy": experiment(
        af.strategies.AFL(concurrency=4, work=WORK), delays=af.replace(af.delays.heavy_tailed(), dropout=0.3)
    ),
    "cancelled": experiment(af.strategies.OverSelection(cohort_size=2, over_selection=1.0, work=WORK)),
    "churn": experiment(
        af.strategies.FedAsync(concurrency=4, work=WORK),
        churn=tuple(
            af.Churn(time=3.0 * k + 1.5 * (event == "join"), client=k % 5, event=event)
            for k in range(20)
            for event in ("leave", "join")
        ),
    ),
}


@pytest.mark.parametrize("model_fn", [perceptron, curved])
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_run_has_the_same_bytes(model_fn, name, monkeypatch, tmp_path):
    problem = make_problem(model_fn)
    asked = []
    result = CompiledAhead.result if model_fn is perceptron else ModuleAhead.result
    monkeypatch.setattr(
        CompiledAhead if model_fn is perceptron else ModuleAhead,
        "result",
        lambda self, ticket: (asked.append(ticket), result(self, ticket))[1],
    )
    path = tmp_path / "ahead.sqlite"
    ahead = simulate(EXPERIMENTS[name], problem=problem, threads=2, out=path, compiled=False)
    assert len(asked) > 35
    alone = simulate(EXPERIMENTS[name], problem=problem, threads=1, compiled=False)
    assert ahead.sha256 == alone.sha256
    assert af.verify(path, problem=problem).ok


@pytest.mark.parametrize("model_fn", [perceptron, curved])
def test_nobody_trains_for_a_run_that_was_given_up(model_fn, monkeypatch):
    """Else the next run, and the end of the process, would wait for all that was out."""
    kept = []
    kind = CompiledAhead if model_fn is perceptron else ModuleAhead
    keep_only = kind.keep_only
    monkeypatch.setattr(kind, "keep_only", lambda self, t: (kept.append(list(t)), keep_only(self, t)))

    def stop(progress):
        if progress.updates > 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(EXPERIMENTS["buffered"], problem=make_problem(model_fn), threads=2, watch=stop, compiled=False)
    assert kept[-1:] == [[]]


def test_batches_that_grow_do_not_make_the_table_longer():
    """Clients of many sizes that train on all of their rows: each one's batch may be the largest so far."""
    rng = np.random.default_rng(2)
    rows = [(rng.normal(size=(n, 12)).astype("f4"), rng.integers(0, 3, n)) for n in range(1, 14)]
    problem = af.problems.torch_problem(perceptron, "cross_entropy", rows)
    ahead, work = problem.train_ahead(2), af.replace(WORK, batch_size=1000)
    for client in range(13):
        assert ahead.begin(client, problem.init(0), client, work, client)
        if client % 3 == 0:
            assert np.array_equal(ahead.result(client), problem.local_train(problem.init(0), client, work, client))
    assert ahead._size == FIRST_LINES
