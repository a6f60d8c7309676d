"""DC-ASGD: traces worked out by hand, the limits without delay and without compensation, and where it is exact."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, DcAsgd
from asyncfed.strategies import AFL, FedAsync, FedBuff
from asyncfed.strategies.discounts import NoDiscount

ETA = 0.5
WORK = Work(learning_rate=ETA)


def arrival(start, gradient, weight=1.0, steps=1, work=WORK, staleness=1):
    """A client that makes so many steps along the same gradient."""
    start = np.atleast_1d(np.asarray(start, float))
    model = start - work.learning_rate * steps * np.atleast_1d(np.asarray(gradient, float))
    return Arrival(0, 0, weight, staleness, work, steps, 10**6, start, model)


def step(rule, params, *arrivals, memory=None):
    params = np.atleast_1d(np.asarray(params, float))
    memory = rule.init(params, 3) if memory is None else memory
    merge = Merge(tuple(range(len(arrivals))), tuple(a.weight for a in arrivals))
    return rule.step(memory, params, arrivals, merge, 0)[:2]


def test_a_trace_by_hand():
    """w = 3, w_b = 1, g = 2: w - 1/2 (2 + 1/4 * 4 * 2) = 1; two steps along g are two such steps."""
    rule = DcAsgd(compensation=0.25)
    assert step(rule, 3.0, arrival(1.0, 2.0))[0].tolist() == [1.0]
    assert step(rule, 3.0, arrival(1.0, 2.0, steps=2))[0].tolist() == [-1.0]
    assert step(rule, 3.0, arrival(1.0, 2.0, weight=0.5))[0].tolist() == [2.0]


def test_several_updates_in_one_merge_are_compensated_from_the_model_before_it():
    rule = DcAsgd(compensation=0.25)
    merged, _ = step(rule, 3.0, arrival(1.0, 2.0, 0.5), arrival(2.0, -2.0, 0.5))
    assert merged.tolist() == [3.0 + 0.5 * -2.0 + 0.5 * (1.0 - 0.5 * 0.25 * 4.0 * 1.0)]


def test_the_adaptive_trace_by_hand():
    """The mean square takes the new gradient in before it is used: m = 3/4, g = 2, then g = 4."""
    rule = DcAsgd(adaptive=True, adaptive_compensation=0.5, mean_square_memory=0.75, epsilon=0.25)
    params, memory = step(rule, 3.0, arrival(1.0, 2.0))
    first = 0.25 * 4.0
    assert memory["mean_square"].tolist() == [first]
    assert params.item() == pytest.approx(3.0 - 0.5 * (2.0 + 0.5 / sqrt(first + 0.25) * 4.0 * 2.0), rel=1e-15)
    merged, memory = step(rule, 5.0, arrival(4.0, 4.0), memory=memory)
    second = 0.75 * first + 0.25 * 16.0
    assert memory["mean_square"].tolist() == [second]
    assert merged.item() == pytest.approx(5.0 - 0.5 * (4.0 + 0.5 / sqrt(second + 0.25) * 16.0 * 1.0), rel=1e-15)


@given(st.floats(-2, 2), st.floats(-2, 2), st.floats(0.1, 3), st.floats(0.01, 2))
def test_it_is_exact_where_the_hessian_is_diagonal_and_lam_g_g(w, offset, gradient, lam):
    """A quadratic with curvature lam g^2, g its gradient at w_b: the step is the one with the gradient at w."""
    curvature, w_b = lam * gradient**2, w + offset
    at_w = gradient + curvature * (w - w_b)
    merged, _ = step(DcAsgd(compensation=lam), w, arrival(w_b, gradient))
    assert merged.item() == pytest.approx(w - ETA * at_w, rel=1e-12, abs=1e-12)


def test_a_client_that_made_no_step_changes_nothing():
    for rule in (DcAsgd(compensation=2.0), DcAsgd(adaptive=True)):
        params, _ = step(rule, 3.0, arrival(1.0, 2.0, steps=0))
        assert params.tolist() == [3.0]


# ---- in runs ----------------------------------------------------------------------------------------------------

STRATEGIES = {
    "deltas": AFL(concurrency=4, aggregate="delta_mean"),
    "mixing": AFL(concurrency=4, aggregate="mixing"),
    "fedasync": FedAsync(concurrency=4),
    "fedbuff": FedBuff(concurrency=4, buffer_size=3),
}


def experiment(strategy, **how):
    work = Work(epochs=2, batch_size=8, learning_rate=0.005)
    settings = {"num_clients": 6, "data": af.data.PaperRegression(num_samples=120), "budget": af.Budget(updates=60)}
    settings["delays"] = af.delays.heavy_tailed()
    return af.Experiment(strategy=af.replace(strategy, work=work), **{**settings, **how})


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_without_compensation_it_is_the_plain_merge_to_the_last_bit(strategy):
    plain = af.run(experiment(strategy))
    without = af.run(experiment(af.replace(strategy, rule=DcAsgd(compensation=0.0))))
    compensated = af.run(experiment(af.replace(strategy, rule=DcAsgd(compensation=0.01))))
    assert plain.sha256["params"] == without.sha256["params"]
    assert plain.sha256["params"] != compensated.sha256["params"]


@pytest.mark.parametrize("rule", [DcAsgd(compensation=1.0), DcAsgd(adaptive=True)], ids=["fixed", "adaptive"])
def test_without_delay_it_is_the_plain_merge_to_the_last_bit(rule):
    """One ticket at a time is never stale."""
    strategy = FedBuff(concurrency=1, buffer_size=1, discount=NoDiscount())
    plain, compensated = (af.run(experiment(s)) for s in (strategy, af.replace(strategy, rule=rule)))
    assert plain.sha256["params"] == compensated.sha256["params"]


def test_single_precision_is_kept():
    start = np.zeros(2, np.float32)
    update = Arrival(0, 0, 1.0, 1, WORK, 1, 10, start, start + np.float32(0.1))
    for rule in (DcAsgd(), DcAsgd(adaptive=True)):
        params = start + np.float32(1.0)
        merged, _, _ = rule.step(rule.init(params, 1), params, [update], Merge((0,), (1.0,)), 0)
        assert merged.dtype == np.float32


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"compensation": float("nan")},
        {"adaptive_compensation": -1.0},
        {"mean_square_memory": 1.0},
        {"epsilon": 0.0},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ConfigError, match=rf"rule\.{name} is .*; it must be"):
        DcAsgd(**wrong)


def test_momentum_and_clients_that_never_download_are_refused():
    for work, name in ((Work(momentum=0.5), "momentum"), (Work(start="own"), "start")):
        with pytest.raises(ConfigError, match=rf"work\.{name} is .*, which the rule DC-ASGD cannot be used with"):
            DcAsgd().check(work)
    DcAsgd().check(Work(proximal=0.1, decay=0.5))
