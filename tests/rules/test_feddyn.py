"""FedDyn: a trace by hand, what g_i and h are, its fixed point, and what it refuses."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.problems import LinearModel
from asyncfed.rules import Arrival, FedDyn, Mean, Scaffold
from asyncfed.rules.client_table import ClientTable
from asyncfed.runs.simulate import simulate
from asyncfed.strategies import FedAsync, FedAvg, algorithms
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.uplinks import TopK

ALPHA = Work(proximal=0.5)


def round_of(rule, memory, params, models):
    """A round: models by client, all from the server's."""
    arrivals = []
    for ticket, (client, model) in enumerate(models.items()):
        end, sent = np.array([model], params.dtype), rule.send(memory, client)
        arrivals.append(Arrival(ticket, client, 1 / len(models), 0, ALPHA, 1, 8, params, end, sent))
    merge = Merge(tuple(range(len(models))), (1 / len(models),) * len(models), keep=0.0, of="model")
    params, memory, _ = rule.step(memory, params, arrivals, merge, 0)
    return params, memory


def test_a_trace_by_hand():
    """Four clients, alpha = 1/2: h = -alpha/4 times the sum of all changes so far."""
    rule, params = FedDyn(), np.array([8.0])
    memory = rule.init(params, 4)
    params, memory = round_of(rule, memory, params, {0: 4.0, 1: 8.0})
    assert params.tolist() == [5.0]  # the changes are -4 and 0: h = 1/2; mean 6 less h / alpha = 1
    assert rule.send(memory, 0)["correction"].tolist() == [-2.0]  # g_0 = 0 - 1/2 (-4) = 2
    params, memory = round_of(rule, memory, params, {0: 3.0, 3: 9.0})
    assert params.tolist() == [5.5]  # changes -2 and 4: h = 1/2 - 1/8 (-2 + 4) = 1/4; 6 less 1/2
    assert [rule.send(memory, c)["correction"].item() for c in range(4)] == [-3.0, 0.0, 0.0, 2.0]
    assert ClientTable(memory, "g").mean().tolist() == [0.25]  # h is the mean of all g_i


def experiment(strategy, **how):
    settings = {
        "num_clients": 6,
        "data": af.data.PaperRegression(num_samples=120),
        "split": af.data.ConceptShift(),
        "model": LinearModel(l2=0.01),
        "evaluation": af.Evaluation(every=1000),
        "budget": af.Budget(rounds=300),
    }
    return af.Experiment(strategy=strategy, **{**settings, **how})


def test_it_finds_the_optimum_with_many_local_steps_where_fedavg_does_not_also_under_loss():
    work = Work(epochs=30, batch_size=10**6, learning_rate=0.05)
    made = algorithms()["feddyn"].make(3, work, ConstantRate())
    delays = af.replace(af.delays.stragglers(), dropout=0.2)
    dynamic, plain = (experiment(s, delays=delays) for s in (made, FedAvg(cohort_size=3, weighting="equal", work=work)))
    optimum = plain.problem().optimum()
    near, far = (np.linalg.norm(af.run(e).params - optimum) / np.linalg.norm(optimum) for e in (dynamic, plain))
    assert near < 1e-6
    assert far > 0.05


def test_at_the_fixed_point_g_is_the_gradient_of_each_client():
    work = Work(epochs=30, batch_size=10**6, learning_rate=0.05, proximal=5.0)
    run = experiment(FedAvg(cohort_size=6, weighting="equal", work=work, rule=FedDyn()))
    problem = run.problem()
    seen = {}
    simulate(run, problem=problem, observer=lambda execution, merge: seen.update(execution.rule.memory), threads=1)
    optimum, table = problem.optimum(), ClientTable(seen, "g")
    for client in range(6):
        assert table.row(client) == pytest.approx(problem.gradient(optimum, client), rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_with_one_client_the_fixed_point_is_its_own_optimum():
    work = Work(epochs=20, batch_size=10**6, learning_rate=0.05, proximal=2.0)
    run = experiment(FedAvg(cohort_size=1, work=work, rule=FedDyn()), num_clients=1, split=af.data.InOrder())
    assert af.run(run).params == pytest.approx(run.problem().optimum(), rel=1e-8)


@pytest.mark.slow
def test_on_arrival_it_runs_too():
    work = Work(epochs=5, batch_size=10**6, learning_rate=0.05, proximal=5.0)
    strategy = FedAsync(concurrency=3, mixing=0.3, work=work, rule=FedDyn())
    run = experiment(strategy, delays=af.delays.stragglers(), budget=af.Budget(updates=2000))
    optimum = run.problem().optimum()
    assert np.linalg.norm(af.run(run).params - optimum) < 1e-3 * np.linalg.norm(optimum)


def test_the_name_takes_the_works_alpha_or_one_of_the_size_of_the_curvature():
    make = algorithms()["feddyn"].make
    assert make(3, ALPHA, ConstantRate()).work.proximal == 0.5
    assert make(3, Work(learning_rate=0.05), ConstantRate()).work.proximal == pytest.approx(2.0)
    assert make(3, ALPHA, ConstantRate()) == FedAvg(cohort_size=3, weighting="equal", work=ALPHA, rule=FedDyn())


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (Work(), r"work\.proximal is 0\.0; it is alpha of FedDyn, which must be above 0"),
        (Work(proximal=0.1, start="own"), r"work\.start is own, which the rule FedDyn"),
        (Work(proximal=0.1, uplink=(TopK(fraction=0.5),)), r"work\.uplink is .*, which the rule FedDyn"),
    ],
)
def test_what_is_refused(work, words):
    with pytest.raises(ConfigError, match=words):
        FedDyn().check(work)


def test_there_is_one_place_for_what_is_sent():
    with pytest.raises(ConfigError, match=r"rule\.rule is Scaffold, which sends a vector to clients, as FedDyn does"):
        FedDyn(rule=Scaffold()).init(np.zeros(1), 2)
    assert FedDyn().rule == Mean()


def test_single_precision_is_kept():
    rule, params = FedDyn(), np.zeros(1, np.float32)
    params, memory = round_of(rule, rule.init(params, 3), params, {0: 0.1, 1: 0.2})
    assert params.dtype == np.float32
    assert rule.send(memory, 0)["correction"].dtype == np.float32
