"""FADAS and AMSGrad: traces worked out by hand in both readings, and the limits of the rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Amsgrad, Arrival, Fadas, Optimised
from asyncfed.strategies import FedBuff
from asyncfed.strategies.discounts import NoDiscount

WORK = Work(epochs=1, batch_size=8, learning_rate=0.01)


def flush(rule, memory, params, changes, staleness):
    """One merge of the mean of these changes, which are as stale as said."""
    weight = 1.0 / len(changes)
    arrivals = [
        Arrival(t, t, weight, tau, Work(), 1, 8, params, params + np.asarray(change, float))
        for t, (change, tau) in enumerate(zip(changes, staleness, strict=True))
    ]
    merge = Merge(tuple(range(len(changes))), (weight,) * len(changes))
    return rule.step(memory, params, arrivals, merge, 0)


def test_a_trace_by_hand_as_in_the_paper():
    """b1 = b2 = 1/2 and eps = 1, so that every number is plain; lr = 1, tau_c = 1."""
    rule = Fadas(lr=1.0, b1=0.5, b2=0.5, eps=1.0, staleness_threshold=1, reading="paper")
    params = np.zeros(1)
    memory = rule.init(params, 4)
    params, memory, info = flush(rule, memory, params, [[2.0], [6.0]], (0, 1))
    # D = 4: m = 2, v = 16/2 = 8 = vh; tau_max = 1 is not above tau_c.
    assert params.item() == pytest.approx(2 / (8**0.5 + 1), rel=1e-15)
    assert info == {"largest_staleness": 1.0, "step_size": 1.0}
    before = params.item()
    params, memory, info = flush(rule, memory, params, [[0.0], [0.0]], (4, 0))
    # D = 0: m = 1, v = 4, vh stays 8; tau_max = 4: min(1, 1/4).
    assert params.item() - before == pytest.approx(0.25 * 1 / (8**0.5 + 1), rel=1e-14)
    assert memory["amsgrad/u"].item() == pytest.approx(8.0, rel=1e-14)
    assert memory["amsgrad/v"].item() == pytest.approx(4.0, rel=1e-14)
    assert info == {"largest_staleness": 4.0, "step_size": 0.25}


def test_a_trace_by_hand_as_in_the_code():
    """The same, with lr = 1/2: lr/tau_max, and both moments divided by 1 - (1/2)^t."""
    rule = Fadas(lr=0.5, b1=0.5, b2=0.5, eps=1.0, staleness_threshold=1)
    params = np.zeros(1)
    memory = rule.init(params, 4)
    params, memory, _ = flush(rule, memory, params, [[2.0], [6.0]], (0, 1))
    assert params.item() == pytest.approx(0.5 * 4 / (16**0.5 + 1), rel=1e-14)  # m = 2/(1/2), vh = 8/(1/2)
    before = params.item()
    params, memory, info = flush(rule, memory, params, [[0.0]], (4,))
    # m = 1/(3/4), vh = 8/(3/4), step 0.5/4.
    assert params.item() - before == pytest.approx(0.125 * (4 / 3) / ((32 / 3) ** 0.5 + 1), rel=1e-13)
    assert info["step_size"] == 0.125


def test_the_readings_differ_whenever_something_is_stale_and_lr_is_small():
    code, paper = (Fadas(lr=1e-3, staleness_threshold=1, reading=reading) for reading in ("code", "paper"))
    assert [code.step_size(tau) for tau in (0, 1, 2, 500)] == [1e-3, 1e-3, 5e-4, 2e-6]
    assert [paper.step_size(tau) for tau in (0, 1, 2, 500, 2000)] == [1e-3, 1e-3, 1e-3, 1e-3, 5e-4]


histories = st.lists(
    st.tuples(st.lists(st.floats(-10, 10), min_size=2, max_size=2), st.integers(0, 9)), min_size=1, max_size=12
)


@given(histories, st.booleans())
@settings(max_examples=25)
def test_without_a_threshold_it_is_amsgrad_on_the_mean_of_the_buffer(history, corrected):
    amsgrad = Amsgrad(lr=0.1, b1=0.9, b2=0.99, eps=1e-8, v0=0.0, bias_correction=corrected)
    plain, rule = Optimised(optimiser=amsgrad), Fadas(reading="code" if corrected else "paper")
    x = y = np.zeros(2)
    memory, own = plain.init(x, 3), rule.init(y, 3)
    for change, tau in history:
        x, memory, _ = flush(plain, memory, x, [change], (tau,))
        y, own, _ = flush(rule, own, y, [change], (tau,))
        assert x.tobytes() == y.tobytes()


@given(histories, st.sampled_from(["code", "paper"]), st.integers(0, 4))
@settings(max_examples=25)
def test_vh_never_falls_and_is_the_largest_v(history, reading, threshold):
    rule, x, m, v, vh, count = Fadas(staleness_threshold=threshold, reading=reading), np.zeros(2), 0, 0, np.zeros(2), 0
    memory = rule.init(x, 3)
    for change, tau in history:
        d = (x + np.array(change)) - x
        m, v = 0.9 * m + (1 - 0.9) * d, 0.99 * v + (1 - 0.99) * d**2
        before, vh, count = vh, np.maximum(vh, v), count + 1
        x, memory, info = flush(rule, memory, x, [change], (tau,))
        assert memory["amsgrad/u"] == pytest.approx(vh, rel=1e-12, abs=1e-300)
        assert (memory["amsgrad/u"] >= before * (1 - 1e-12)).all()
        assert info["step_size"] <= 0.1
        assert np.isfinite(x).all()


@pytest.mark.parametrize("reading", ["code", "paper"])
def test_without_any_memory_it_is_nearly_the_sign(reading):
    rule, x = Fadas(lr=0.25, b1=0.0, b2=0.0, eps=1.0, reading=reading), np.zeros(3)
    x, _, _ = flush(rule, rule.init(x, 1), x, [[3.0, -1.0, 0.0]], (0,))
    assert x.tolist() == [0.25 * 3 / 4, -0.25 / 2, 0.0]  # lr D / (|D| + eps)


def test_single_precision_is_kept():
    rule, x = Fadas(staleness_threshold=0), np.zeros(2, np.float32)
    memory = rule.init(x, 3)
    for tau in (0, 3):
        update = Arrival(0, 0, 0.5, tau, Work(), 1, 1, x, x + np.float32(0.1))
        x, memory, _ = rule.step(memory, x, [update], Merge((0,), (0.5,)), 0)
        assert x.dtype == np.float32


def test_in_a_run_it_shrinks_what_is_stale(tiny):
    def run(rule):
        strategy = FedBuff(concurrency=6, buffer_size=2, discount=NoDiscount(), work=WORK, rule=rule)
        return af.run(tiny(clients=6, strategy=strategy, budget=af.Budget(updates=24))).params

    never, always = run(Fadas()), run(Fadas(staleness_threshold=0))
    assert np.linalg.norm(always) < np.linalg.norm(never)


def test_bad_settings_are_refused():
    with pytest.raises(ConfigError, match=r"rule\.staleness_threshold is -1; it must be 0 or more versions"):
        Fadas(staleness_threshold=-1)
    with pytest.raises(ConfigError, match=r"optimiser\.lr is 0; it must be a positive number"):
        Fadas(lr=0)
    with pytest.raises(ConfigError, match=r"optimiser\.b2 is 1\.0"):
        Fadas(b2=1.0)
