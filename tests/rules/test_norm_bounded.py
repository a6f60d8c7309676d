"""Bounding norms by what is usual."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, Mean, Median, Momentum, NormBounded, Optimised, Robust
from asyncfed.strategies import FedAsync, FedAvg, FedBuff


def merged(rule, merges, weight=1.0):
    """The models and findings of merges of these changes, from 0."""
    params, memory, found, ticket = np.zeros(1), rule.init(np.zeros(1), 3), [], 0
    for changes in merges:
        arrivals = []
        for change in changes:
            start = np.full(1, 7.0)
            arrivals.append(Arrival(ticket, ticket % 3, weight, 0, Work(), 1, 1, start, start + change))
            ticket += 1
        merge = Merge(tuple(a.ticket for a in arrivals), (weight,) * len(arrivals))
        params, memory, info = rule.step(memory, params, arrivals, merge, 0)
        found.append((float(params[0]), info))
    return found, memory


def test_a_trace_by_hand():
    """One by one: two are waited for; then C = 2 * the median of 1, 3, 100, which is 6, and of 1, 3, 6, 4: 6."""
    rule = NormBounded(needed=3, window=4)
    found, memory = merged(rule, [[1.0], [-3.0], [100.0], [4.0], [-50.0]])
    assert found == [
        (0.0, {"too_few": 1}),
        (0.0, {"too_few": 2}),
        (6.0, {"shortened": 1, "norm_bound": 6.0, "shortened/2": 100.0}),
        (10.0, {}),
        (2.0, {"shortened": 1, "norm_bound": 8.0, "shortened/4": 50.0}),
    ]
    assert memory["norms/numbers"].tolist() == [8.0, 3.0, 6.0, 4.0]


def test_a_full_buffer_is_enough_for_the_first_merge():
    found, _ = merged(NormBounded(), [[1.0, 2.0, 900.0, 3.0, -4.0]])
    assert found == [(1.0 + 2.0 + 6.0 + 3.0 - 4.0, {"shortened": 1, "norm_bound": 6.0, "shortened/2": 900.0})]


def test_changes_of_no_length_say_nothing():
    found, memory = merged(NormBounded(needed=2), [[0.0, 0.0, 0.0, 1.0, 2.0], [0.0, 0.0, 5.0]])
    assert [model for model, _ in found] == [3.0, 7.0]  # 1 + 2 within 2 * 1; 5 is shortened to 2 * 2
    assert memory["norms/count"] == 3


@pytest.mark.parametrize("lie", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_counts_as_no_change(lie):
    found, memory = merged(NormBounded(needed=1), [[1.0, lie, 2.0]])
    assert found == [(3.0, {"shortened": 1, "norm_bound": 2.0, "shortened/1": np.finfo(float).max})]
    assert memory["norms/count"] == 2


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.5, 2.0), min_size=4, max_size=8), st.floats(10.0, 1e300), st.booleans())
def test_fewer_than_half_cannot_be_longer_than_twice_an_honest_change(honest, lie, first):
    lies = [lie] * (len(honest) - 1)
    found, _ = merged(NormBounded(), [lies + honest if first else honest + lies, [lie]])
    (model, _), (after, _) = found
    assert abs(model) <= sum(honest) + len(lies) * 2 * max(honest) * (1 + 1e-12)
    assert abs(after - model) <= 2 * max(honest) * 2 * (1 + 1e-12)  # what was accepted is at most twice as long


def test_a_wrapped_rule_keeps_its_memory_and_findings():
    rule = NormBounded(rule=Optimised(rule=Robust(aggregator=Median(liars=2)), optimiser=Momentum(b=0.5)))
    found, memory = merged(rule, [[1.0, 1.0, 1.0, 1.0, 9.0], [1.0, 1.0]], weight=0.2)
    assert found[0] == (1.0, {"shortened": 1, "norm_bound": 2.0, "shortened/4": 9.0})
    assert found[1][1] == {"too_few": 2}
    assert {"norms/numbers", "wrapped/optimiser/m", "wrapped/wrapped/seen"} <= set(memory)


@pytest.mark.parametrize(
    "strategy", [FedAsync(concurrency=4), FedBuff(concurrency=4, buffer_size=3), FedAvg(cohort_size=4)], ids=str
)
def test_runs_are_the_same_again_and_a_wide_bound_changes_nothing(strategy, tmp_path):
    wide = NormBounded(factor=1e9, needed=1)
    base = af.Experiment(
        num_clients=8,
        data=af.data.PaperRegression(num_samples=200),
        delays=af.delays.heavy_tailed(),
        strategy=replace(strategy, rule=Mean()),
        budget=af.Budget(updates=60),
    )
    experiment = replace(base, strategy=replace(strategy, rule=wide))
    assert af.from_toml(af.to_toml(experiment)) == experiment
    assert af.run(base).sha256 == af.run(experiment).sha256
    tight = replace(base, strategy=replace(strategy, rule=NormBounded(factor=0.5)))
    file = tmp_path / "run.sqlite"
    assert af.run(tight, out=file).sha256 != af.run(base).sha256
    assert af.verify(file).ok


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"quantile": 1.1}, "rule.quantile is 1.1"),
        ({"factor": 0.0}, "rule.factor is 0.0"),
        ({"factor": np.inf}, "rule.factor is inf"),
        ({"needed": 0}, "rule.needed is 0"),
        ({"window": 4}, "rule.needed is 5 and rule.window 4"),
    ],
)
def test_settings_are_checked(how, message):
    with pytest.raises(ConfigError, match=message):
        NormBounded(**how)
