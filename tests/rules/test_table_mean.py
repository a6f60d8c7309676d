"""The mean of all clients' last changes: traces by hand, what is in the mean, and the limits that the family shares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import CA2FL, Arrival, Mean, TableMean
from asyncfed.rules.client_table import ClientTable


def step(rule, memory, params, updates, eta=1.0, of="delta"):
    """One merge of (client, change, staleness) triples, each with the weight eta / their number."""
    weight = eta / len(updates)
    arrivals = []
    for ticket, (client, change, staleness) in enumerate(updates):
        model = params + np.atleast_1d(np.asarray(change, params.dtype))
        arrivals.append(Arrival(ticket, client, weight, staleness, Work(), 1, 8, params, model))
    merge = Merge(tuple(range(len(updates))), (weight,) * len(updates), keep=float(of == "delta"), of=of)
    params, memory, _ = rule.step(memory, params, arrivals, merge, 0)
    return params, memory


def test_a_trace_by_hand():
    """Two of four clients have reported: the mean is over them, then over three, all with weight eta."""
    rule, params = TableMean(), np.array([10.0])
    memory = rule.init(params, 4)
    params, memory = step(rule, memory, params, [(0, 4.0, 0)], eta=0.5)
    assert params.tolist() == [12.0]  # h = 4
    params, memory = step(rule, memory, params, [(2, 8.0, 1)], eta=0.5)
    assert params.tolist() == [15.0]  # h = (4 + 8)/2
    params, memory = step(rule, memory, params, [(0, -2.0, 0), (9, 6.0, 2)], eta=0.5)
    assert params.tolist() == [17.0]  # h = (-2 + 8 + 6)/3, with the weights 1/4 and 1/4; client 9 came later
    table = ClientTable(memory, "h")
    assert (table.num_rows, table.num_clients) == (3, 5)
    assert table.mean_of_rows().tolist() == [4.0]


def test_a_trace_with_a_largest_age():
    """An entry counts as long as the model it was made from is at most 2 versions old."""
    rule, params = TableMean(max_age=2), np.array([0.0])
    memory, rows = rule.init(params, 2), []
    merges = [
        [(0, 6.0, 0)],  # version 0, made from 0: h = 6
        [(1, 2.0, 1)],  # version 1, made from 0: h = (6 + 2)/2 = 4
        [(1, 4.0, 0)],  # version 2, made from 2; client 0's is 2 old: h = (6 + 4)/2 = 5
        [(1, 4.0, 0)],  # version 3, made from 3; client 0's is 3 old and out: h = 4
        [(0, 8.0, 0)],  # version 4: it is in again, h = (8 + 4)/2 = 6
        [(7, 1.0, 3)],  # version 5, made from 2: too old when it comes; h = (8 + 4)/2
    ]
    for merge in merges:
        params, memory = step(rule, memory, params, merge)
        rows.append((params.item(), ClientTable(memory, "h").num_rows))
    assert rows == [(6.0, 1), (10.0, 2), (15.0, 2), (19.0, 1), (25.0, 2), (31.0, 2)]


def test_with_nobody_left_the_model_stays():
    rule, params = TableMean(max_age=0), np.array([5.0])
    memory = rule.init(params, 2)
    params, memory = step(rule, memory, params, [(0, 1.0, 0)])
    assert params.tolist() == [6.0]
    params, memory = step(rule, memory, params, [(1, 1.0, 1)])
    assert params.tolist() == [6.0]
    assert ClientTable(memory, "h").num_rows == 0


histories = st.lists(
    st.lists(st.tuples(st.integers(0, 6), st.floats(-10, 10), st.integers(0, 4)), min_size=1, max_size=3),
    min_size=1,
    max_size=20,
)


@settings(max_examples=15)
@given(histories, st.sampled_from([None, 0, 1, 3, 10**9]))
def test_it_is_the_mean_over_the_entries_that_are_young_enough(history, max_age):
    rule = TableMean() if max_age is None else TableMean(max_age=max_age)
    params, x, kept = np.zeros(1), 0.0, {}
    memory = rule.init(params, 5)  # clients 5 and 6 come later
    for version, updates in enumerate(history):
        updates = [(client, change, min(staleness, version)) for client, change, staleness in updates]
        for client, change, staleness in updates:
            kept[client] = (change, version - staleness)
        young = [d for d, made in kept.values() if max_age is None or version - made <= max_age]
        x += 0.5 * (np.mean(young) if young else 0.0)
        params, memory = step(rule, memory, params, updates, eta=0.5)
        assert params.item() == pytest.approx(x, abs=1e-11)


@settings(max_examples=15)
@given(histories)
def test_a_limit_that_is_never_reached_changes_no_bit(history):
    models = []
    for rule in (TableMean(), TableMean(max_age=10**6)):
        params = np.zeros(1)
        memory = rule.init(params, 7)
        for updates in history:
            params, memory = step(rule, memory, params, updates, eta=0.3)
        models.append(params.tobytes())
    assert models[0] == models[1]


@settings(max_examples=15)
@given(st.lists(st.lists(st.floats(-10, 10), min_size=4, max_size=4), min_size=1, max_size=10))
def test_with_everybody_in_a_merge_all_readings_of_the_table_are_the_plain_mean(rounds):
    """S = all: h = v = mean D, for changes added and for models in place of the model (MIFA, FedVARP)."""
    for of in ("delta", "model"):
        ends = []
        for rule in (Mean(), TableMean(), TableMean(max_age=0), CA2FL()):
            params = np.zeros(1)
            memory = rule.init(params, 4)
            for changes in rounds:
                params, memory = step(rule, memory, params, [(c, d, 0) for c, d in enumerate(changes)], of=of)
            ends.append(params.item())
        assert ends == pytest.approx([ends[0]] * 4, abs=1e-11)


@settings(max_examples=15)
@given(st.floats(-10, 10), st.lists(st.floats(0.1, 1.0), min_size=1, max_size=12))
def test_with_equal_clients_all_readings_agree(change, etas):
    """After one merge of all, round robin: h = D and h + D - h_i = D."""
    ends = []
    for rule in (Mean(), TableMean(), TableMean(max_age=3), CA2FL()):
        params = np.zeros(1)
        memory = rule.init(params, 3)
        params, memory = step(rule, memory, params, [(client, change, 0) for client in range(3)])
        for number, eta in enumerate(etas):
            params, memory = step(rule, memory, params, [(number % 3, change, min(number, 2))], eta=eta)
        ends.append(params.item())
    assert ends == pytest.approx([ends[0]] * 4, abs=1e-9)


def test_the_mean_is_still_exact_after_many_merges():
    chance = np.random.default_rng(0)
    rule, params = TableMean(max_age=40), np.zeros(3)
    memory = rule.init(params, 10)
    for _ in range(1000):
        change = 10.0 ** chance.integers(-3, 4) * chance.standard_normal(3)
        params, memory = step(rule, memory, params, [(int(chance.integers(10)), change, 0)], eta=1e-6)
    table = ClientTable(memory, "h")
    rows = np.array([table.row(client) for client in range(10) if table.row(client).any()])
    assert len(rows) == table.num_rows
    assert table.mean_of_rows() == pytest.approx(rows.mean(axis=0), rel=1e-12, abs=1e-9)


def test_what_is_refused():
    with pytest.raises(ConfigError, match=r"rule\.max_age is -1; it must be 0 or more versions"):
        TableMean(max_age=-1)
    with pytest.raises(ConfigError, match=r"work\.start is own, which the rule table_mean cannot be used with"):
        TableMean().check(Work(start="own"))
    TableMean().check(Work(momentum=0.5, proximal=0.1))
    assert TableMean().theorem is None
