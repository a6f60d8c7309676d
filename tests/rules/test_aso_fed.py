"""ASO-Fed's rule: a trace by hand, telescoping, the limits of b, what s_i is, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, AsoFed, Mean, Scaffold
from asyncfed.rules.aso_fed import newcomers
from asyncfed.uplinks import TopK

RATE = Work(learning_rate=0.5, proximal=0.01)


def arrive(rule, memory, params, client, model, weight=1.0, start=None, steps=2, sent=None):
    """One merge on arrival; with two steps at rate 1/2 the sum of the rates is 1."""
    start = params if start is None else np.atleast_1d(start)
    sent = rule.send(memory, client) if sent is None else sent
    end = np.atleast_1d(np.asarray(model, params.dtype))
    a = Arrival(0, client, weight, 0, RATE, steps, 64, start, end, sent)
    params, memory, _ = rule.step(memory, params, [a], Merge((0,), (weight,)), 0)
    return params, memory


def correction(rule, memory, client):
    return rule.send(memory, client)["correction"].item()


def test_a_trace_by_hand():
    """b = 1/2. s = (start - model) - correction; h lags one pass behind s_prev."""
    rule, params = AsoFed(), np.array([8.0])
    memory = rule.init(params, 2)
    assert correction(rule, memory, 0) == 0.0  # the first pass has z = s
    params, memory = arrive(rule, memory, params, 0, 4.0, 0.5)
    assert params.tolist() == [6.0]  # 8 + 1/2 (4 - 8)
    assert correction(rule, memory, 0) == -4.0  # s = 4, h = 1/2 * 0 + 1/2 * 0
    params, memory = arrive(rule, memory, params, 0, 5.0, 0.5)
    assert params.tolist() == [6.5]  # the change is counted from its last model: 6 + 1/2 (5 - 4)
    assert correction(rule, memory, 0) == 2.0 - 5.0  # s = (6 - 5) + 4 = 5, h = 1/2 * 0 + 1/2 * 4
    params, memory = arrive(rule, memory, params, 1, 9.0, 0.5)
    assert params.tolist() == [7.0]  # its last model is the first one: 6.5 + 1/2 (9 - 8)
    params, memory = arrive(rule, memory, params, 0, 6.0, 0.5)
    assert params.tolist() == [7.5]
    assert correction(rule, memory, 0) == 3.5 - 4.0  # s = (7 - 6) + 3 = 4, h = 1/2 * 2 + 1/2 * 5


histories = st.lists(st.tuples(st.integers(0, 3), st.floats(-10, 10)), min_size=1, max_size=30)


@settings(max_examples=15)
@given(histories, st.floats(0, 1))
def test_the_servers_model_is_the_weighted_mean_of_the_last_models(history, balance):
    rule, params, shares = AsoFed(balance=balance), np.array([3.0]), [0.1, 0.2, 0.3, 0.4]
    memory, last = rule.init(params, 4), [3.0] * 4
    for client, model in history:
        params, memory = arrive(rule, memory, params, client, model, shares[client])
        last[client] = model
        assert params.item() == pytest.approx(np.dot(shares, last), abs=1e-11)


@settings(max_examples=15)
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=12))
def test_with_b_1_the_corrections_telescope(gradients):
    """h stays 0 and z = s - s_prev: what all passes moved the client by is the last s."""
    rule, params = AsoFed(balance=1.0), np.zeros(1)
    memory, moved = rule.init(params, 1), 0.0
    for s in gradients:
        z = s + correction(rule, memory, 0)
        moved += z
        start = params
        params, memory = arrive(rule, memory, params, 0, start - z)
    assert moved == pytest.approx(gradients[-1], abs=1e-9)
    assert correction(rule, memory, 0) == pytest.approx(-gradients[-1], abs=1e-9)


@settings(max_examples=15)
@given(st.lists(st.floats(-10, 10), min_size=3, max_size=12), st.floats(0, 1))
def test_z_is_s_less_the_previous_s_plus_h(gradients, b):
    rule, params = AsoFed(balance=b), np.zeros(1)
    memory, h, previous = rule.init(params, 1), 0.0, 0.0
    for s in gradients:
        z = s + correction(rule, memory, 0)
        assert z == pytest.approx(s - previous + h, abs=1e-9)
        params, memory = arrive(rule, memory, params, 0, params - z)
        h, previous = b * h + (1 - b) * previous, s


def test_s_is_made_with_the_correction_that_was_sent_however_late_it_comes():
    rule, params = AsoFed(), np.array([8.0])
    memory = rule.init(params, 2)
    sent = rule.send(memory, 0)
    params, memory = arrive(rule, memory, params, 0, 4.0)
    params, memory = arrive(rule, memory, params, 0, 5.0, start=8.0, sent=sent)
    assert correction(rule, memory, 0) == 2.0 - 3.0  # s = 8 - 5, not 3 - (h - s_prev of today)


def test_who_comes_later_begins_at_the_model_it_downloads_and_no_step_leaves_gradients_alone():
    rule, params = AsoFed(), np.array([8.0])
    memory = rule.init(params, 1)
    params, memory = arrive(rule, memory, params, 0, 4.0)  # x = 4
    params, memory = arrive(rule, memory, params, 5, 6.0, 0.5)
    assert params.tolist() == [5.0]  # 4 + 1/2 (6 - 4)
    params, memory = arrive(rule, memory, params, 5, 5.0, 0.5, steps=0)
    assert params.tolist() == [4.5]
    assert correction(rule, memory, 5) == 2.0  # s = 4 - 6 = -2, as before


def test_who_was_absent_at_the_start_begins_at_the_model_it_downloads_too():
    rule, params = AsoFed(), np.array([8.0])
    memory = rule.init(params, 3)
    params, memory = arrive(rule, memory, params, 0, 4.0)  # x = 4
    first = Arrival(7, 1, 0.5, 0, RATE, 2, 64, params, np.array([6.0]), rule.send(memory, 1))
    params, memory, _ = rule.step(memory, params, [first], Merge((7,), (0.5,), combiner=newcomers(7)), 0)
    assert params.tolist() == [5.0]  # 4 + 1/2 (6 - 4); not 4 + 1/2 (6 - 8)
    params, memory = arrive(rule, memory, params, 1, 7.0, 0.5)
    assert params.tolist() == [5.5]  # from its last model, 6


def test_what_is_refused_and_single_precision():
    with pytest.raises(ConfigError, match=r"rule\.balance is -0\.1; it must be from 0 to 1"):
        AsoFed(balance=-0.1)
    for work in (Work(momentum=0.5), Work(start="own"), Work(uplink=(TopK(fraction=0.5),))):
        with pytest.raises(ConfigError, match="which the rule ASO-Fed cannot be used with"):
            AsoFed().check(work)
    AsoFed().check(RATE)
    with pytest.raises(ConfigError, match=r"rule\.rule is Scaffold, which sends a vector to clients, as ASO-Fed does"):
        AsoFed(rule=Scaffold()).init(np.zeros(1), 2)
    assert AsoFed().rule == Mean()
    rule, params = AsoFed(), np.zeros(1, np.float32)
    params, memory = arrive(rule, rule.init(params, 2), params, 0, 0.1)
    assert params.dtype == np.float32
    assert rule.send(memory, 0)["correction"].dtype == np.float32
