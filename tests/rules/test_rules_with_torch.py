"""Rules on PyTorch problems: gradients are counted as its optimiser makes them, and variates are its gradients."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.types import Work
from asyncfed.rules import CA2FL, Ctma, DcAsgd, FedDyn, FedNova, Median, NormBounded, Robust, Scaffold
from asyncfed.rules.fednova import count_gradients
from asyncfed.store.schema import KIND_NAMES
from asyncfed.strategies import ASOFed, FedAvg, FedBuff
from asyncfed.strategies.samplers import Fair

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn


class Offset(nn.Module):
    """One number whose gradient is -1 under the loss below, wherever it is."""

    def __init__(self):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, x):
        return x[:, 0] + self.offset


def downhill(outputs, targets):
    return targets - outputs


@pytest.mark.parametrize("how", [{"momentum": 0.9}, {"momentum": 0.3}, {"decay": 0.5}, {"proximal": 4.0}, {}], ids=str)
def test_a_change_is_so_many_gradients(how):
    problem = af.problems.torch_problem(Offset, downhill, [(np.zeros((7, 1)), np.zeros(7))])
    work = Work(epochs=3, batch_size=3, learning_rate=0.1, **how)
    moved = (problem.local_train(problem.init(0), 0, work, 5) - problem.init(0)).item()
    assert moved == pytest.approx(0.1 * count_gradients(work, 9, 7), rel=1e-12)


def perceptron():
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).double()


def problem_of_three():
    rng = np.random.default_rng(0)
    return af.problems.torch_problem(
        perceptron, "cross_entropy", [(rng.normal(size=(n, 4)), rng.integers(0, 2, n)) for n in (12, 7, 20)]
    )


def experiment(strategy, work, **how):
    strategy = af.replace(strategy, work=work)
    return af.Experiment(num_clients=3, strategy=strategy, delays=af.delays.heavy_tailed(), **how)


def test_one_full_step_of_all_clients_with_scaffold_is_gradient_descent():
    problem = problem_of_three()
    strategy = FedAvg(cohort_size=3, weighting="equal", rule=Scaffold())
    base = experiment(strategy, Work(batch_size=100, learning_rate=0.2), budget=af.Budget(rounds=10))
    run = af.run(base, problem=problem)
    params = problem.init(base.seed)
    for _ in range(10):
        params = params - 0.2 * np.mean([problem.gradient(params, client) for client in range(3)], axis=0)
    assert run.params == pytest.approx(params, rel=1e-9, abs=1e-11)


def test_two_full_steps_with_feddyn_have_the_linear_and_the_proximal_term():
    problem, lr, alpha = problem_of_three(), 0.2, 0.5
    work = Work(epochs=2, batch_size=100, learning_rate=lr, proximal=alpha)
    base = experiment(FedAvg(cohort_size=3, weighting="equal", rule=FedDyn()), work, budget=af.Budget(rounds=8))
    x = problem.init(base.seed)
    g, h = np.zeros((3, x.size)), np.zeros(x.size)
    for _ in range(8):
        models = []
        for client in range(3):
            w = x
            for _ in range(2):
                w = w - lr * (problem.gradient(w, client) - g[client] + alpha * (w - x))
            g[client] -= alpha * (w - x)
            models.append(w)
        h -= alpha / 3 * np.sum([w - x for w in models], axis=0)
        x = np.mean(models, axis=0) - h / alpha
    assert af.run(base, problem=problem).params == pytest.approx(x, rel=1e-9, abs=1e-11)


def test_two_full_steps_with_aso_fed_have_the_correction_and_the_proximal_term():
    problem, lr, lam, b = problem_of_three(), 0.2, 0.5, 0.5
    work = Work(epochs=2, batch_size=100, learning_rate=lr, proximal=lam)
    base = experiment(ASOFed(concurrency=1, dynamic_step=False, sampler=Fair()), work, budget=af.Budget(updates=9))
    x = problem.init(base.seed)
    last, s, h, sizes = np.tile(x, (3, 1)), np.zeros((3, x.size)), np.zeros((3, x.size)), np.array([12, 7, 20])
    run = af.run(base, problem=problem)
    for client in [event.client for event in run.journal.event_rows() if KIND_NAMES[event.kind] == "merge"]:
        w, surrogates = x, []
        for _ in range(2):
            surrogates.append(problem.gradient(w, client) + lam * (w - x))
            w = w - lr * (surrogates[-1] - s[client] + h[client])
        h[client], s[client] = b * h[client] + (1 - b) * s[client], np.mean(surrogates, axis=0)
        x = x - sizes[client] / sizes.sum() * (last[client] - w)
        last[client] = w
    assert run.params == pytest.approx(x, rel=1e-9, abs=1e-11)


RULES = {"scaffold": Scaffold(), "ca2fl": CA2FL(), "fednova": FedNova(), "dc_asgd": DcAsgd(adaptive=True)}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_same_run_again_and_replayed(rule, tmp_path):
    path, problem = tmp_path / "run.sqlite", problem_of_three()
    strategy = FedBuff(concurrency=3, buffer_size=2, rule=rule)
    base = experiment(strategy, Work(epochs=2, batch_size=4, learning_rate=0.1), budget=af.Budget(updates=30))
    run = af.run(base, problem=problem, out=path, threads=1)
    assert run.evaluations["objective"][-1] < run.evaluations["objective"][0]
    assert run.sha256 == af.run(base, problem=problem_of_three(), threads=2).sha256
    run.journal.close()
    verification = af.verify(path, problem=problem)
    assert verification.ok, verification.lines


@pytest.mark.parametrize("aggregator", [Median(), Ctma(liars=1)], ids=["median", "ctma"])
def test_robust_rules_merge_modules_in_single_precision(aggregator, tmp_path):
    chance = np.random.default_rng(0)
    clients = [(chance.normal(size=(8, 3)).astype(np.float32), np.arange(8) % 2) for _ in range(5)]
    problem = af.problems.torch_problem(lambda: nn.Linear(3, 2), nn.CrossEntropyLoss(), clients)
    strategy = FedBuff(concurrency=5, buffer_size=4, rule=NormBounded(rule=Robust(aggregator=aggregator), needed=3))
    experiment = af.Experiment(num_clients=5, strategy=strategy, budget=af.Budget(updates=24))
    run = af.run(experiment, problem=problem, out=tmp_path / "run.sqlite", threads=1)
    assert run.params.dtype == np.float32
    assert np.isfinite(run.params).all()
    assert af.verify(tmp_path / "run.sqlite", problem=problem).ok
