"""FedAdam, FedYogi, FedAdagrad and FedAvgM: the published formulas, their limits, and traces worked out by hand."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Adagrad, Adam, Arrival, Mean, Momentum, Optimised, Rule, Yogi
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff

OPTIMISERS = {"adam": Adam(), "yogi": Yogi(), "adagrad": Adagrad(), "momentum": Momentum()}


def run_optimiser(optimiser, changes, dtype=np.float64):
    """The steps it takes for these changes, one after another, and its memory at the end."""
    memory, steps = optimiser.init(np.zeros(np.size(changes[0]), dtype)), []
    for change in changes:
        step, memory = optimiser.update(memory, np.atleast_1d(np.asarray(change, dtype)))
        steps.append(step)
    return np.array(steps), memory


# ---- traces by hand ---------------------------------------------------------------------------------------------


def test_adams_trace():
    """v starts at eps^2 and nothing is corrected for it: the published algorithm."""
    optimiser = Adam(lr=0.5, b1=0.5, b2=0.75, eps=1.0)
    steps, memory = run_optimiser(optimiser, [4.0, -2.0])
    m1, v1 = 0.5 * 4.0, 0.75 * 1.0 + 0.25 * 16.0
    m2, v2 = 0.5 * m1 - 0.5 * 2.0, 0.75 * v1 + 0.25 * 4.0
    assert (m1, v1, m2, v2) == (2.0, 4.75, 0.0, 4.5625)
    assert steps.ravel() == pytest.approx([0.5 * 2.0 / (sqrt(4.75) + 1.0), 0.0], rel=1e-15)
    assert (memory["m"].item(), memory["v"].item()) == (0.0, 4.5625)


def test_yogis_trace():
    """v moves by (1 - b2) D^2, up when D^2 is above it, down when it is below."""
    steps, memory = run_optimiser(Yogi(lr=1.0, b1=0.5, b2=0.75, eps=1.0), [4.0, 2.0, 3.0])
    v1 = 1.0 + 0.25 * 16.0  # 1 < 16: up
    v2 = v1 - 0.25 * 4.0  # 5 > 4: down
    v3 = v2 + 0.25 * 9.0  # 4 < 9: up
    assert (v1, v2, v3) == (5.0, 4.0, 6.25)
    m1, m2, m3 = 2.0, 2.0, 2.5
    expected = [m1 / (sqrt(5.0) + 1.0), m2 / 3.0, m3 / 3.5]
    assert steps.ravel() == pytest.approx(expected, rel=1e-15)
    assert memory["v"].item() == 6.25


def test_adagrads_trace():
    steps, memory = run_optimiser(Adagrad(lr=2.0, eps=0.5, v0=0.0), [3.0, -4.0])
    assert steps.ravel() == pytest.approx([2.0 * 3.0 / 3.5, -2.0 * 4.0 / 5.5], rel=1e-15)
    assert memory["v"].item() == 25.0


def test_momentums_trace():
    steps, memory = run_optimiser(Momentum(lr=0.5, b=0.5), [4.0, 0.0, -2.0])
    assert steps.ravel().tolist() == [2.0, 1.0, -0.5]
    assert memory["m"].item() == -1.0


def test_adam_with_bias_correction_is_kingmas_and_bas():
    """The moments of t equal changes, corrected, are those changes: every step is lr D / (|D| + eps)."""
    optimiser = Adam(lr=0.1, b1=0.9, b2=0.99, eps=1e-3, v0=0.0, bias_correction=True)
    steps, memory = run_optimiser(optimiser, [np.array([3.0, -0.25])] * 40)
    assert steps == pytest.approx(np.tile([0.1 * 3.0 / 3.001, -0.1 * 0.25 / 0.251], (40, 1)), rel=1e-12)
    assert memory["count"] == 40


# ---- limits -----------------------------------------------------------------------------------------------------


def test_the_second_moment_starts_at_eps_squared_unless_it_is_set():
    for optimiser in (Adam(eps=0.5), Yogi(eps=0.5), Adagrad(eps=0.5)):
        assert optimiser.init(np.zeros(2))["v"].tolist() == [0.25, 0.25]
        assert replace(optimiser, v0=0.0).init(np.zeros(2))["v"].tolist() == [0.0, 0.0]


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5))
def test_yogis_first_second_moment_from_zero_is_adams(change):
    first = [run_optimiser(optimiser, [change])[1]["v"] for optimiser in (Adam(v0=0.0), Yogi(v0=0.0))]
    assert np.array_equal(*first)


@given(change=st.floats(-1e3, 1e3).filter(lambda d: abs(d) > 1e-3), steps=st.integers(1, 50))
@settings(max_examples=30)
def test_adagrads_step_after_t_equal_changes(change, steps):
    optimiser = Adagrad(lr=0.3, v0=0.0)
    taken, _ = run_optimiser(optimiser, [change] * steps)
    assert taken[-1].item() == pytest.approx(0.3 * change / (sqrt(steps) * abs(change) + 1e-3), rel=1e-12)


def small(strategy, **how):
    work = Work(epochs=2, batch_size=8, learning_rate=0.01)
    settings = {"num_clients": 8, "data": af.data.PaperRegression(num_samples=200), "budget": af.Budget(updates=80)}
    return af.Experiment(
        **{**settings, "delays": af.delays.heavy_tailed(), "strategy": replace(strategy, work=work), **how}
    )


STRATEGIES = {
    "fedavg": FedAvg(cohort_size=4),
    "fedbuff": FedBuff(concurrency=4, buffer_size=3),
    "fedasync": FedAsync(concurrency=4),
    "afl": AFL(concurrency=4, aggregate="delta_mean"),
    "mixing": AFL(concurrency=4, aggregate="mixing"),
}


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_with_a_huge_eps_adam_is_the_strategy_itself(strategy):
    """lr = eps = 1e12 and b1 = 0: the step is D. Models with keep = 0, deltas and buffers alike."""
    plain = af.run(small(strategy)).params
    optimiser = Adam(lr=1e12, eps=1e12, b1=0.0, v0=0.0)
    optimised = af.run(small(replace(strategy, rule=Optimised(optimiser=optimiser)))).params
    assert np.linalg.norm(optimised - plain) <= 1e-9 * np.linalg.norm(plain)
    assert np.linalg.norm(plain - af.run(small(strategy, budget=af.Budget(updates=1))).params) > 1e-3


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_momentum_of_nothing_is_the_strategy_itself(strategy):
    plain = af.run(small(strategy)).params
    optimised = af.run(small(replace(strategy, rule=Optimised(optimiser=Momentum(b=0.0))))).params
    assert optimised == pytest.approx(plain, rel=1e-9)


# ---- what is wrapped --------------------------------------------------------------------------------------------


class Counting(Rule, af.Config, tag_field="kind", tag="counting"):
    """Counts merges in its memory, sends, measures, and refuses works of one epoch."""

    draws_noise = True

    def check(self, work):
        if work.epochs == 1:
            raise ConfigError("one epoch")

    def init(self, params, num_clients):
        return {"m": np.zeros(num_clients), "count": np.zeros((), np.int64)}

    def send(self, memory, client):
        return {"correction": np.full(2, float(memory["count"]))}

    def measure(self, memory, params, arrival, probe):
        return {"merges": float(memory["count"])}

    def step(self, memory, params, arrivals, merge, key):
        return params + key, {**memory, "count": memory["count"] + 1}, {"key": key}


def arrival(change, start=(0.0, 0.0), weight=1.0, ticket=0, client=0):
    start = np.asarray(start)
    return Arrival(ticket, client, weight, 0, Work(), 1, 1, start, start + np.asarray(change))


def test_everything_but_the_step_is_the_wrapped_rules():
    rule = Optimised(rule=Counting(), optimiser=Momentum(lr=2.0, b=0.5))
    assert rule.draws_noise
    assert not Optimised().draws_noise
    with pytest.raises(ConfigError, match="one epoch"):
        rule.check(Work())
    memory = rule.init(np.zeros(2), 3)
    assert {name: array.shape for name, array in memory.items()} == {
        "optimiser/m": (2,),
        "wrapped/m": (3,),
        "wrapped/count": (),
    }
    params = np.zeros(2)
    for key, expected in ((1, 2.0), (4, 2.0 + 2.0 * 4.5)):
        params, memory, info = rule.step(memory, params, [arrival([9.0, 9.0])], Merge((0,), (1.0,)), key)
        assert params.tolist() == [expected, expected]
        assert info == {"key": key}
    assert rule.send(memory, 0)["correction"].tolist() == [2.0, 2.0]
    assert rule.measure(memory, params, arrival([0.0, 0.0]), None) == {"merges": 2.0}


def test_one_optimiser_may_wrap_another():
    rule = Optimised(rule=Optimised(optimiser=Momentum(b=0.5)), optimiser=Momentum(b=0.5))
    memory, params = rule.init(np.zeros(1), 1), np.zeros(1)
    positions = []
    for change in (8.0, 0.0, 0.0):
        params, memory, _ = rule.step(memory, params, [arrival([change], [0.0])], Merge((0,), (1.0,)), 0)
        positions.append(params.item())
    assert positions == [8.0, 16.0, 22.0]  # inner steps 8, 4, 2; outer ones 8, 8, 6
    assert sorted(memory) == ["optimiser/m", "wrapped/optimiser/m"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("optimiser", [*OPTIMISERS.values(), Adam(bias_correction=True)], ids=str)
def test_the_models_type_is_kept(optimiser, dtype):
    rule = Optimised(optimiser=optimiser)
    params = np.array([1.0, -2.0], dtype)
    memory = rule.init(params, 1)
    for _ in range(3):
        moved = Arrival(0, 0, 1.0, 0, Work(), 1, 1, params, params + np.ones(2, dtype))
        params, memory, _ = rule.step(memory, params, [moved], Merge((0,), (1.0,)), 0)
    assert params.dtype == dtype
    assert all(array.dtype == dtype for name, array in memory.items() if name[-1] in "mv")


# ---- settings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Adam(lr=0.0), r"optimiser\.lr is 0\.0; it must be a positive number"),
        (lambda: Adam(b1=1.0), r"optimiser\.b1 is 1\.0; it must be at least 0 and below 1"),
        (lambda: Yogi(eps=float("inf")), r"optimiser\.eps is inf"),
        (lambda: Adagrad(v0=-1.0), r"optimiser\.v0 is -1\.0; .* left out for eps\*\*2"),
        (lambda: Momentum(b=-0.1), r"optimiser\.b is -0\.1"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
def test_it_is_written_to_toml_and_read_back(optimiser):
    experiment = small(FedBuff(concurrency=4, buffer_size=3, rule=Optimised(rule=Mean(), optimiser=optimiser)))
    assert af.from_toml(af.to_toml(experiment)) == experiment
