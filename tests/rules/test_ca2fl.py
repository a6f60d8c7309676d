"""CA2FL: a trace worked out by hand, the limits of the published rule, and what its table holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import CA2FL, Arrival, Mean
from asyncfed.rules.client_table import ClientTable
from asyncfed.strategies import FedBuff
from asyncfed.strategies.discounts import NoDiscount

WORK = Work(epochs=2, batch_size=8, learning_rate=0.01)


def arrival(ticket, client, change, weight, start=(0.0,)):
    start = np.asarray(start, float)
    return Arrival(ticket, client, weight, 0, Work(), 1, 8, start, start + np.asarray(change, float))


def flush(rule, memory, params, updates, eta=1.0, start=None):
    """One merge of (client, change) pairs, all from `start` or the model, each with the weight eta / K."""
    start = params if start is None else start
    weight = eta / len(updates)
    arrivals = [arrival(t, client, np.atleast_1d(d), weight, start) for t, (client, d) in enumerate(updates)]
    merge = Merge(tuple(range(len(updates))), (weight,) * len(updates))
    params, memory, _ = rule.step(memory, params, arrivals, merge, 0)
    return params, memory


def test_a_trace_by_hand():
    """Four clients, eta = 2: v uses h and h_i from before the flush, and the mean is over all four."""
    rule = CA2FL()
    params = np.array([10.0])
    memory = rule.init(params, 4)
    params, memory = flush(rule, memory, params, [(0, 4.0), (1, 8.0)], eta=2.0)
    assert params.tolist() == [22.0]  # h = 0, h_i = 0: v = mean(4, 8) = 6
    assert ClientTable(memory, "h").mean().tolist() == [3.0]  # (4 + 8 + 0 + 0)/4
    params, memory = flush(rule, memory, params, [(1, 2.0), (3, 6.0)], eta=2.0, start=np.array([-5.0]))
    assert params.tolist() == [28.0]  # v = 3 + mean(2 - 8, 6 - 0) = 3
    assert ClientTable(memory, "h").mean().tolist() == [3.0]  # (4 + 2 + 0 + 6)/4
    params, memory = flush(rule, memory, params, [(0, 1.0), (0, 5.0)], eta=2.0)
    assert params.tolist() == [32.0]  # old h_0 = 4 for both: v = 3 + mean(1 - 4, 5 - 4) = 2
    assert ClientTable(memory, "h").row(0).tolist() == [5.0]  # the last wins
    assert ClientTable(memory, "h").mean().tolist() == [3.25]


histories = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.floats(-10, 10)), min_size=1, max_size=4), min_size=1, max_size=20
)


@given(histories, st.sampled_from([1.0, 0.5]))
def test_it_is_the_published_rule_and_h_is_always_the_mean_of_all_h_i(history, eta):
    rule, x, kept = CA2FL(), 0.0, np.zeros(6)
    params = np.zeros(1)
    memory = rule.init(params, 6)
    for updates in history:
        clients, changes = [c for c, _ in updates], np.array([d for _, d in updates])
        x += eta * (kept.mean() + (changes - kept[clients]).mean())
        for client, change in updates:
            kept[client] = change
        params, memory = flush(rule, memory, params, updates, eta)
        assert params.item() == pytest.approx(x, abs=1e-11)
        assert ClientTable(memory, "h").mean().item() == pytest.approx(kept.mean(), abs=1e-12)


def experiment(rule, buffer_size, num_clients=6, updates=60, **how):
    how = {"discount": NoDiscount()} | how
    strategy = FedBuff(concurrency=num_clients, buffer_size=buffer_size, work=WORK, **how)
    data = af.data.PaperRegression(num_samples=40 * num_clients)
    budget = af.Budget(updates=updates)
    if rule is not None:
        strategy = af.replace(strategy, rule=rule)
    return af.Experiment(num_clients=num_clients, data=data, strategy=strategy, budget=budget)


@pytest.mark.parametrize("server_lr", [1.0, 0.4])
def test_with_everybody_in_the_buffer_it_is_fedbuff_without_a_discount(server_lr):
    """All take a second, so each buffer holds every client once."""
    plain = af.run(experiment(None, 6, server_lr=server_lr))
    calibrated = af.run(experiment(CA2FL(), 6, server_lr=server_lr))
    assert calibrated.participation().tolist() == [10] * 6
    assert calibrated.params == pytest.approx(plain.params, rel=1e-12, abs=1e-12)


def test_with_one_client_it_is_the_plain_merge():
    plain, calibrated = (af.run(experiment(rule, 1, num_clients=1, updates=20)) for rule in (None, CA2FL()))
    assert calibrated.params == pytest.approx(plain.params, rel=1e-12)


def test_it_is_something_else_otherwise():
    plain, calibrated = (af.run(experiment(rule, 2)) for rule in (None, CA2FL()))
    assert np.abs(plain.params - calibrated.params).max() > 1e-3


def test_single_precision_is_kept():
    rule, params = CA2FL(), np.zeros(2, np.float32)
    memory = rule.init(params, 3)
    for client in (0, 1, 0):
        update = Arrival(0, client, 0.5, 0, Work(), 1, 1, params, params + np.float32(0.1 * (client + 1)))
        params, memory, _ = rule.step(memory, params, [update], Merge((0,), (0.5,)), 0)
        assert params.dtype == np.float32


def test_clients_that_never_download_are_refused():
    with pytest.raises(ConfigError, match=r"work\.start is own, which the rule CA2FL cannot be used with"):
        CA2FL().check(Work(start="own"))
    CA2FL().check(WORK)
    assert CA2FL().theorem is None
    assert CA2FL().rule == Mean()
