"""FedNova: how gradients are counted, the limits of the rule, and the fixed point that it is made for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.data import Clients
from asyncfed.problems import Linear
from asyncfed.rules import Arrival, FedNova
from asyncfed.rules.fednova import count_gradients
from asyncfed.strategies import FedAvg, FedBuff

# ---- a_i --------------------------------------------------------------------------------------------------------


@given(st.floats(0.01, 0.99), st.integers(0, 200))
def test_momentum_is_counted_as_by_the_recursion(r, steps):
    k = a = 0.0
    for _ in range(steps):
        k = r * k + 1
        a += k
    assert count_gradients(Work(momentum=r), steps, 10**6) == pytest.approx(a, rel=1e-9, abs=1e-9)


@given(st.floats(1e-9, 0.999), st.integers(0, 200))
def test_a_proximal_term_is_counted_as_by_the_recursion(pull, steps):
    a = 0.0
    for _ in range(steps):
        a = a * (1 - pull) + 1
    work = Work(learning_rate=0.5, proximal=pull / 0.5)
    assert count_gradients(work, steps, 10**6) == pytest.approx(a, rel=1e-9)


def test_plain_steps_are_counted_one_by_one_and_at_their_rates():
    assert count_gradients(Work(learning_rate=0.3), 7, 64) == pytest.approx(7, rel=1e-15)
    assert count_gradients(Work(batch_size=8, decay=1.0), 4, 16) == pytest.approx(2 + 2 / 2)


@pytest.mark.parametrize("how", [{}, {"decay": 0.7}, {"proximal": 3e7}], ids=str)
def test_a_change_is_so_many_gradients(how):
    """A rate so small that the gradient stays -1e9, while the proximal term pulls back by 3 per cent a step."""
    clients = Clients(np.zeros((12, 1)), np.full(12, 1e9), np.array([0, 12]), labels=False)
    problem = Linear(clients, loss="least_squares")
    work = Work(epochs=3, batch_size=4, learning_rate=1e-9, **how)
    moved = problem.local_train(np.zeros(2), 0, work, 1)[1]
    assert moved == pytest.approx(count_gradients(work, 9, 12), rel=1e-7)


# ---- the rule ---------------------------------------------------------------------------------------------------


def step(updates, params=(0.0,), of="delta", keep=1.0):
    """One merge of (weight, steps, change), all from `params`."""
    params, rule = np.array(params), FedNova()
    arrivals = [
        Arrival(t, t, weight, 0, Work(batch_size=1), steps, 100, params, params + change)
        for t, (weight, steps, change) in enumerate(updates)
    ]
    merge = Merge(tuple(range(len(updates))), tuple(w for w, _, _ in updates), keep=keep, of=of)
    return rule.step(rule.init(params, 9), params, arrivals, merge, 0)[0]


def test_a_trace_by_hand():
    """tau_eff = 1/4 * 2 + 3/4 * 6 = 5; x = 1 + 5 (1/4 * 4/2 + 3/4 * 12/6) = 11, whichever way it is merged."""
    updates = [(0.25, 2, 4.0), (0.75, 6, 12.0)]
    assert step(updates, [1.0]).tolist() == [11.0]
    assert step(updates, [1.0], of="model", keep=0.0).tolist() == [11.0]
    halved = [(weight / 2, steps, change) for weight, steps, change in updates]
    assert step(halved, [1.0]).tolist() == [6.0]  # a server's step of 1/2


def test_a_client_without_a_step_changes_nothing_but_the_average():
    assert step([(0.5, 0, 0.0), (0.5, 4, 8.0)]).tolist() == [2.0]  # tau_eff = 2, and 1/2 * 2 * 8/4 = 2
    assert step([(0.0, 3, 1.0), (0.0, 4, 8.0)]).tolist() == [0.0]


def experiment(strategy, samples, **how):
    data = af.data.PaperRegression(num_samples=samples)
    settings = {"num_clients": 6, "data": data, "split": af.data.InOrder(), "budget": af.Budget(updates=48), **how}
    return af.Experiment(strategy=strategy, **settings)


@pytest.mark.parametrize(
    "strategy", [FedAvg(cohort_size=4), FedBuff(concurrency=4, buffer_size=3)], ids=["fedavg", "fedbuff"]
)
def test_with_equal_steps_it_is_the_plain_merge_to_the_last_bit(strategy):
    strategy = af.replace(strategy, work=Work(epochs=2, batch_size=4, learning_rate=0.01))
    plain, scaled = (af.run(experiment(s, 60)) for s in (strategy, af.replace(strategy, rule=FedNova())))
    assert plain.sha256["params"] == scaled.sha256["params"]


def test_with_unequal_steps_the_fixed_point_is_the_optimum_and_that_of_fedavg_is_not():
    """Losses 1/2 (w - 1)^2, two rows, and (w - 5)^2, eight rows. A client's rows are equal: all batches are full."""
    x = np.concatenate([np.ones(2), np.full(8, np.sqrt(2.0))])[:, None]
    y = np.concatenate([np.ones(2), np.full(8, 5.0 * np.sqrt(2.0))])
    clients = Clients(x, y, np.array([0, 2, 10]), labels=False)
    problem = Linear(clients, loss="least_squares", fit_bias=False)
    work = Work(
        batch_size=2, learning_rate=0.002
    )  # one step and four; so small that the pull does not change in a pass
    strategy = FedAvg(cohort_size=2, weighting="equal", work=work)
    how = {"num_clients": 2, "budget": af.Budget(rounds=900)}
    plain = af.run(experiment(strategy, 10, **how), problem=problem)
    scaled = af.run(experiment(af.replace(strategy, rule=FedNova()), 10, **how), problem=problem)
    assert problem.optimum() == pytest.approx([11 / 3])  # (w - 1) + 2 (w - 5) = 0
    assert scaled.params.item() == pytest.approx(11 / 3, abs=0.02)
    assert plain.params.item() == pytest.approx(41 / 9, abs=0.02)  # (w - 1) + 4 * 2 (w - 5) = 0


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "match"),
    [
        (Work(momentum=0.9, proximal=0.1), r"work\.momentum is 0\.9, which the rule FedNova cannot"),
        (Work(decay=0.5, proximal=0.1), r"work\.decay is 0\.5, which the rule FedNova cannot"),
        (Work(decay=0.5, momentum=0.1), r"work\.decay is 0\.5, which the rule FedNova cannot"),
        (
            Work(learning_rate=0.5, proximal=2.0),
            r"work\.learning_rate \* work\.proximal is 1; FedNova needs it below 1",
        ),
        (Work(start="own"), r"work\.start is own"),
    ],
)
def test_work_whose_gradients_cannot_be_counted_is_refused(work, match):
    with pytest.raises(ConfigError, match=match):
        FedNova().check(work)


def test_all_other_work_is_fine():
    for work in (Work(), Work(decay=0.5), Work(momentum=0.9), Work(proximal=0.1), Work(patience=2, epochs=9)):
        FedNova().check(work)
