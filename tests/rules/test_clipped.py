"""Clipping at the server, before any rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, Clipped, Mean, Momentum, Optimised
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff

STRATEGIES = {
    "fedavg": FedAvg(cohort_size=4),
    "fedbuff": FedBuff(concurrency=4, buffer_size=3),
    "fedasync": FedAsync(concurrency=4),
    "afl": AFL(concurrency=4, aggregate="delta_mean"),
}


def arrival(ticket, change, start=(0.0, 0.0), weight=1.0):
    start = np.asarray(start)
    return Arrival(ticket, ticket, weight, 0, Work(), 1, 1, start, start + np.asarray(change))


def test_each_change_is_clipped_by_itself():
    arrivals = [arrival(0, [3.0, 4.0]), arrival(1, [0.0, 1.0], start=[5.0, 5.0]), arrival(2, [0.0, -20.0])]
    merge = Merge((0, 1, 2), (0.5, 0.25, 0.25))
    arrivals = [a._replace(weight=w) for a, w in zip(arrivals, merge.weights, strict=True)]
    params, memory, info = Clipped(norm=2.0).step({}, np.array([1.0, 1.0]), arrivals, merge, 0)
    assert params == pytest.approx(np.array([1.0 + 0.5 * 1.2, 1.0 + 0.5 * 1.6 + 0.25 - 0.25 * 2.0]), rel=1e-15)
    assert (memory, info) == ({}, {"clipped": 2})


def test_models_are_clipped_by_how_far_they_went():
    merge = Merge((0,), (0.5,), keep=0.5, of="model")
    params, _, _ = Clipped(norm=1.0).step({}, np.zeros(2), [arrival(0, [0.0, 7.0], [10.0, 10.0], 0.5)], merge, 0)
    assert params.tolist() == [5.0, 5.5]


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=2), st.floats(0.1, 5))
def test_no_change_moves_the_model_by_more_than_the_norm(change, norm):
    params, _, _ = Clipped(norm=norm).step({}, np.zeros(2), [arrival(0, change)], Merge((0,), (1.0,)), 0)
    assert np.linalg.norm(params) <= norm * (1 + 1e-12)


def test_the_wrapped_rule_keeps_its_memory():
    rule = Clipped(rule=Optimised(optimiser=Momentum(b=0.5)), norm=4.0)
    params, memory = np.zeros(1), rule.init(np.zeros(1), 1)
    for change in (8.0, 1.0):
        params, memory, info = rule.step(memory, params, [arrival(0, [change], [0.0])], Merge((0,), (1.0,)), 0)
    assert params.tolist() == [4.0 + 3.0]
    assert list(memory) == ["wrapped/optimiser/m"]
    assert info == {}


@pytest.mark.parametrize("norm", [1e9, float("inf")])
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_a_norm_above_all_changes_nothing(strategy, norm, tmp_path):
    base = af.Experiment(
        num_clients=8,
        data=af.data.PaperRegression(num_samples=200),
        delays=af.delays.heavy_tailed(),
        strategy=replace(strategy, rule=Mean()),
        budget=af.Budget(updates=80),
    )
    wide = replace(base, strategy=replace(strategy, rule=Clipped(norm=norm)))
    assert af.from_toml(af.to_toml(wide)) == wide
    file = tmp_path / "run.sqlite"
    assert af.run(base).sha256 == af.run(wide, out=file).sha256
    assert af.verify(file).ok
    tight = replace(base, strategy=replace(strategy, rule=Clipped(norm=1e-3)))
    assert af.run(base).sha256 != af.run(tight).sha256


@pytest.mark.parametrize("norm", [0.0, float("nan")])
def test_a_norm_that_is_none_is_refused(norm):
    with pytest.raises(ConfigError, match=r"rule.norm is .*; it must be a positive number"):
        Clipped(norm=norm)
