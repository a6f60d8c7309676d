"""SCAFFOLD: what its variates are, in rounds and under any delay, its limits, and what it refuses."""

from types import SimpleNamespace

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.types import Merge, Work
from asyncfed.kernels.reference import shuffle, with_bias
from asyncfed.problems import LinearModel
from asyncfed.rules import Arrival, Mean, Rule, Scaffold
from asyncfed.rules.client_table import ClientTable
from asyncfed.runs.simulate import simulate
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff
from asyncfed.strategies.samplers import UniformAll
from asyncfed.uplinks import TopK

STRATEGIES = {
    "rounds": FedAvg(cohort_size=3, weighting="equal"),
    "buffer": FedBuff(concurrency=4, buffer_size=3),
    "on_arrival": FedAsync(concurrency=5),
    "deltas": AFL(concurrency=4, aggregate="delta_mean"),
    "queues": AFL(concurrency=6, aggregate="delta_mean", sampler=UniformAll()),
}
WORKS = {
    "constant": Work(epochs=2, batch_size=4, learning_rate=0.01),
    "decay": Work(epochs=3, batch_size=4, learning_rate=0.01, decay=0.5),
    "cut": Work(steps=7, batch_size=4, learning_rate=0.01, decay=0.5),
    "patience": Work(epochs=30, patience=1, batch_size=4, learning_rate=0.01, decay=0.1),
}


def experiment(strategy, work=WORKS["constant"], rule=None, **how):
    strategy = af.replace(strategy, work=work)
    settings = {
        "num_clients": 6,
        "data": af.data.PaperRegression(num_samples=96),
        "split": af.data.QuantitySkew(concentration=1.0),
        "model": LinearModel(l2=0.01),
        "delays": af.delays.heavy_tailed(),
        "budget": af.Budget(updates=40),
        "strategy": strategy if rule is None else af.replace(strategy, rule=rule),
    }
    return af.Experiment(**{**settings, **how})


# ---- what the variates are --------------------------------------------------------------------------------------


def mean_gradient(problem, dispatch, start, correction, steps, seed):
    """By a slow loop: the stochastic gradients of this ticket's steps, each counting as much as its rate."""
    client, work, point = dispatch.client, dispatch.work, start
    first, last = problem.clients.offsets[client : client + 2]
    x, y = with_bias(problem.clients.x[first:last], True), problem.clients.y[first:last]
    stream = Stream(draw_key(purpose_key(seed, "train"), client, dispatch.ticket))
    order, epoch, gradients, rates = list(range(len(y))), 0, [], []
    while len(rates) < steps:
        shuffle(order, stream)
        epoch += 1
        for begin in range(0, len(y), work.batch_size):
            rows = order[begin : begin + work.batch_size]
            if len(rates) < steps:
                gradients.append((x[rows] @ point - y[rows]) @ x[rows] / len(rows) + problem.model.l2 * point)
                rates.append(work.learning_rate / epoch**work.decay)
                point = point - rates[-1] * (gradients[-1] + correction)
    return np.average(gradients, axis=0, weights=rates)


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_a_variate_is_the_mean_gradient_of_the_last_pass_under_any_delay_and_c_is_their_mean(strategy, work):
    base = experiment(strategy, work, Scaffold())
    problem, expected, stale, errors, fewer = base.problem(), {}, [], [], []

    def compare(execution):
        table = ClientTable(execution.rule.memory, "c")
        for client in range(6):
            gradient = expected.get(client, np.zeros(problem.num_params))
            errors.append(np.abs(table.row(client) - gradient).max() / np.abs(gradient).max(initial=1.0))
        rows = np.array([table.row(client) for client in range(6)])
        assert np.abs(table.mean() - rows.mean(axis=0)).max() <= 1e-13 * np.abs(rows).max(initial=1.0)

    def observe(execution, merge):
        compare(execution)
        for ticket in merge.tickets:
            dispatch = execution.dispatches[ticket]
            stale.append(execution.version - dispatch.base_version)
            correction = execution.rule.sent_with(ticket)["correction"]
            start = execution.vectors.starts[ticket]
            asked = dispatch.work.count_steps(problem.num_examples[dispatch.client])
            made = int((execution._reports[ticket].metrics or {}).get("steps", asked))
            fewer.append(made < asked)
            expected[dispatch.client] = mean_gradient(problem, dispatch, start, correction, made, base.seed)

    simulate(base, problem=problem, observer=observe, threads=1)
    assert max(errors) < 1e-12
    assert any(fewer) == (work is WORKS["patience"])
    assert len(expected) >= 4
    assert (max(stale) > 0) == (strategy is not STRATEGIES["rounds"])


def merge_of(*arrivals):
    return Merge(tuple(a.ticket for a in arrivals), tuple(a.weight for a in arrivals))


def test_a_trace_by_hand():
    """Four clients, rate 1/2 and two steps: c_i = (start - model) - correction; c moves by a quarter of its change."""
    rule, params = Scaffold(), np.array([8.0])
    memory, work = rule.init(params, 4), Work(learning_rate=0.5)
    assert rule.send(memory, 2)["correction"].tolist() == [0.0]
    first = Arrival(0, 2, 0.5, 0, work, 2, 64, params, np.array([2.0]), {"correction": np.zeros(1)})
    params, memory, _ = rule.step(memory, params, [first], merge_of(first), 0)
    assert params.tolist() == [5.0]
    assert ClientTable(memory, "c").row(2).tolist() == [6.0]
    assert rule.send(memory, 2)["correction"].tolist() == [1.5 - 6.0]
    assert rule.send(memory, 0)["correction"].tolist() == [1.5]
    late = Arrival(1, 2, 0.5, 1, work, 2, 64, np.array([8.0]), np.array([5.0]), {"correction": np.array([-4.5])})
    params, memory, _ = rule.step(memory, params, [late], merge_of(late), 0)
    assert ClientTable(memory, "c").row(2).tolist() == [7.5]  # 3 + 4.5: with the correction that was sent, not today's
    assert rule.send(memory, 0)["correction"].tolist() == [1.875]


def test_a_client_that_made_no_step_keeps_its_variate():
    rule, params = Scaffold(), np.zeros(1)
    memory = rule.init(params, 2)
    ClientTable(memory, "c").put(1, np.array([3.0]))
    idle = Arrival(0, 1, 1.0, 0, Work(), 0, 0, params, params, {"correction": np.array([-1.5])})
    _, memory, _ = rule.step(memory, params, [idle], merge_of(idle), 0)
    assert ClientTable(memory, "c").row(1).tolist() == [3.0]


# ---- limits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
def test_with_one_client_it_is_plain_sgd_to_the_last_bit(work):
    how = {"num_clients": 1, "budget": af.Budget(updates=30)}
    strategy = FedAvg(cohort_size=1)
    plain, corrected = (af.run(experiment(strategy, work, rule, **how)) for rule in (None, Scaffold()))
    assert plain.sha256["params"] == corrected.sha256["params"]


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_with_variates_frozen_at_zero_it_is_the_strategy_itself_to_the_last_bit(strategy, monkeypatch):
    monkeypatch.setattr(ClientTable, "put", lambda self, client, vector: None)
    plain, corrected = (af.run(experiment(strategy, rule=rule)) for rule in (None, Scaffold()))
    assert plain.sha256["params"] == corrected.sha256["params"]
    monkeypatch.undo()
    assert af.run(experiment(strategy, rule=Scaffold())).sha256["params"] != plain.sha256["params"]


def test_one_full_step_of_all_clients_is_gradient_descent():
    strategy = FedAvg(cohort_size=6, weighting="equal")
    base = experiment(strategy, Work(batch_size=10**6, learning_rate=0.02), Scaffold(), budget=af.Budget(rounds=25))
    problem = base.problem()
    params = problem.init(base.seed)
    for _ in range(25):
        params = params - 0.02 * np.mean([problem.gradient(params, client) for client in range(6)], axis=0)
    assert af.run(base).params == pytest.approx(params, rel=1e-12)


def test_it_finds_the_optimum_where_the_drift_of_clients_keeps_fedavg_from_it():
    """Full batches and twenty local steps on clients with models of their own."""
    work = Work(epochs=20, batch_size=10**6, learning_rate=0.02)
    how = {"split": af.data.ConceptShift(), "budget": af.Budget(rounds=400), "model": LinearModel(l2=0.01)}
    strategy = FedAvg(cohort_size=6, weighting="equal")
    plain, corrected = (experiment(strategy, work, rule, **how) for rule in (None, Scaffold()))
    optimum = plain.problem().optimum()
    near, far = (np.linalg.norm(af.run(e).params - optimum) for e in (corrected, plain))
    assert near < 1e-6 * np.linalg.norm(optimum)
    assert far > 1e-3 * np.linalg.norm(optimum)


# ---- what is sent, and what is refused --------------------------------------------------------------------------


def test_one_vector_goes_down_with_the_model_and_nothing_more_up():
    plain, corrected = (af.run(experiment(STRATEGIES["buffer"], rule=rule)) for rule in (None, Scaffold()))
    assert corrected.rounds["bytes_down"].tolist() == (2 * plain.rounds["bytes_down"]).tolist()
    assert corrected.rounds["bytes_up"].tolist() == plain.rounds["bytes_up"].tolist()


def test_single_precision_is_kept():
    rule, params = Scaffold(), np.zeros(2, np.float32)
    memory = rule.init(params, 3)
    sent = rule.send(memory, 0)
    assert sent["correction"].dtype == np.float32
    update = Arrival(0, 0, 1.0, 0, Work(), 3, 96, params, params + np.float32(0.1), sent)
    merged, memory, _ = rule.step(memory, params, [update], merge_of(update), 0)
    assert merged.dtype == np.float32
    assert rule.send(memory, 1)["correction"].dtype == np.float32


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (Work(momentum=0.5), "momentum"),
        (Work(proximal=0.1), "proximal"),
        (Work(start="own"), "start"),
        (Work(uplink=(TopK(),)), "uplink"),
    ],
    ids=["momentum", "proximal", "start", "uplink"],
)
def test_other_work_than_plain_sgd_is_refused_before_the_run(work, name):
    with pytest.raises(ConfigError, match=rf"work\.{name} is .*, which the rule SCAFFOLD cannot be used with: "):
        Scaffold().check(work)
    with pytest.raises(ConfigError, match=rf"Leave work\.{name} out, or use another rule"):
        af.run(experiment(FedAvg(cohort_size=2), work, Scaffold()))


def test_what_it_wraps_may_refuse_too_and_may_send_nothing():
    class Picky(Rule):
        def check(self, work):
            raise ConfigError("not today")

    wrapped = SimpleNamespace(rule=Picky())
    with pytest.raises(ConfigError, match="not today"):
        Scaffold.check(wrapped, Work())
    with pytest.raises(ConfigError, match=r"rule\.rule is Scaffold, which sends a vector to clients"):
        Scaffold(rule=Scaffold()).init(np.zeros(1), 2)
    assert Scaffold().rule == Mean()
    assert Scaffold().theorem is None
