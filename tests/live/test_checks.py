"""What a result has to pass, check by check. That a session applies them is tested with the session."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Dispatch, Work
from asyncfed.live.checks import (
    Limits,
    RecentNorms,
    find_fault,
    find_fault_in_change,
    max_message_bytes,
    read_model,
)
from asyncfed.live.wire import Result
from asyncfed.uplinks import ErrorFeedback, TopK
from asyncfed.uplinks.norms import change_norm

START = np.arange(4.0)
HONEST = Result("s", 7, 0.5, 8, "<f8", {"loss": 0.25})
PLAIN = Dispatch(7, 0, 3, Work())
REMEMBERING = Dispatch(7, 0, 3, Work(uplink=(ErrorFeedback(codec=TopK(fraction=0.5)),)), 5)
IMPATIENT = Dispatch(7, 0, 3, Work(epochs=3, batch_size=4, patience=1))
MEASURING = Dispatch(7, 0, 3, Work(loss=True))
OF_ITS_START = Dispatch(7, 0, 3, Work(start_rms=True))
MESSAGE = {"indices": np.array([0b0101], np.uint8), "values": np.array([1.0, -1.0])}


def fault(params=None, limits=None, norms=None, dispatch=PLAIN, arrays=None, **changes):
    """All checks, as a session makes them."""
    limits = limits or Limits()
    wrong = find_fault(dispatch, replace(HONEST, **changes), limits, num_examples=8, seconds_out=1.0)
    if wrong is not None:
        return wrong
    try:
        model = read_model(dispatch, arrays or {"model": START + 1.0 if params is None else params}, START, {})[0]
    except ValueError as error:
        return str(error)
    return find_fault_in_change(change_norm(model, START), norms or RecentNorms(limits))


def test_an_honest_result_passes():
    assert fault() is None
    assert fault(metrics=None) is None
    assert fault(metrics={}) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"params": np.full(4, np.nan)}, "not finite"),
        ({"params": np.full(4, np.inf)}, "not finite"),
        ({"params": np.zeros(5)}, "has shape (5,); it must have (4,)"),
        ({"params": np.zeros((4, 1))}, "has shape (4, 1)"),
        ({"params": np.zeros(4, np.float32)}, "holds float32; it must hold float64"),
        ({"params": b"1234"}, "sent a bytes where an array is due"),
        ({"params": START + 1e7}, "the norm of its change is 2e+07; at most 1e+06 is accepted"),
        ({"duration": -0.1}, "worked for -0.1 s"),
        ({"duration": float("inf")}, "worked for inf s"),
        ({"duration": "long"}, "worked for 'long' s"),
        ({"duration": True}, "worked for True s"),
        ({"duration": 1.2}, "worked for 1.2 s on a ticket that was out for 1 s"),
        ({"num_examples": 7}, "has 7 examples; it had declared 8"),
        ({"num_examples": 8.0}, "has 8.0 examples"),
        ({"metrics": [1.0]}, "its metrics are a list"),
        ({"metrics": {str(i): 0.0 for i in range(17)}}, "sent 17 metrics; at most 16 are accepted"),
        ({"metrics": {"x" * 65: 0.0}}, "at most 64 letters are accepted"),
        ({"metrics": {1: 0.0}}, "the name of a metric is '1'"),
        ({"metrics": {"loss": float("nan")}}, "metric 'loss' is nan; it must be a finite number"),
        ({"metrics": {"loss": 10**400}}, "metric 'loss' is 1000"),
        ({"metrics": {"loss": "low"}}, "metric 'loss' is low"),
    ],
)
def test_each_fault_is_named(changes, words):
    assert words in fault(**changes)


def test_a_message_is_decoded_and_added_to_the_start():
    assert fault(dispatch=REMEMBERING, memory=5, arrays=MESSAGE) is None
    assert fault(dispatch=REMEMBERING, memory=-1, arrays=MESSAGE) is None
    assert read_model(REMEMBERING, MESSAGE, START, {})[0].tolist() == [1.0, 1.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dispatch": PLAIN, "memory": 5}, "used the memory of ticket 5; its work has none"),
        ({"memory": 4}, "used the memory of ticket 4; it must be 5, or -1"),
        ({"memory": True}, "used the memory of ticket True"),
        ({"memory": UNSET}, "used the memory of ticket UNSET"),
        ({"arrays": {"model": START}}, "its message has 32 bytes; 17 are due"),
        ({"arrays": {**MESSAGE, "values": np.zeros(3)}}, "its message has 25 bytes"),
        ({"arrays": {"a": np.zeros(17, np.uint8)}}, "its message cannot be decoded: "),
        (
            {"arrays": {**MESSAGE, "indices": np.array([0b0111], np.uint8)}},
            "cannot be decoded: its indices must be 2 that increase",
        ),
        (
            {"arrays": {**MESSAGE, "indices": np.array([0b10001], np.uint8)}},
            "cannot be decoded: its indices must be 2 that increase",
        ),
        ({"arrays": {**MESSAGE, "values": np.array([np.nan, 0.0])}}, "not finite"),
        ({"arrays": {**MESSAGE, "values": np.array([1e308, -1e308])}}, "not finite"),
        ({"arrays": {**MESSAGE, "values": np.array([1e7, 0.0])}}, "the norm of its change is 1e+07"),
        ({"dispatch": PLAIN, "memory": UNSET, "arrays": MESSAGE}, "it sent 'indices', 'values' where a model is due"),
        ({"dispatch": PLAIN, "memory": UNSET, "metrics": {"steps": 3.0}}, "its work makes all that were asked for"),
        ({"dispatch": IMPATIENT, "memory": UNSET, "metrics": {"steps": 7.0}}, "made 7.0 steps; between 0 and 6"),
        ({"dispatch": IMPATIENT, "memory": UNSET, "metrics": {"steps": 0.5}}, "made 0.5 steps"),
        ({"dispatch": IMPATIENT, "memory": UNSET, "metrics": None}, "made None steps"),
        ({"dispatch": MEASURING, "memory": UNSET, "metrics": None}, "it sent no loss"),
        ({"dispatch": OF_ITS_START, "memory": UNSET, "metrics": {"loss": 1.0}}, "it sent no start_rms"),
        ({"dispatch": MEASURING, "memory": UNSET, "metrics": {"accuracy": 1.0}}, "it sent no loss"),
    ],
)
def test_each_fault_of_a_message_is_named(changes, words):
    assert words in fault(**{"dispatch": REMEMBERING, "memory": 5, "arrays": MESSAGE, **changes})


def test_steps_are_brought_by_work_that_may_end_early():
    assert fault(dispatch=IMPATIENT, metrics={"steps": 6.0}) is None


def test_a_result_is_as_long_as_the_model_or_what_its_uplinks_declare():
    class Unknown:
        def size(self, num_params, itemsize):
            return None

    assert max_message_bytes(Work(), 100, 8) == 800
    assert max_message_bytes(Work(uplink=(TopK(fraction=0.01),)), 100, 8) == 1 + 8
    assert max_message_bytes(Work(uplink=(TopK(fraction=1.0),)), 100, 8) == 800
    assert max_message_bytes(Work(uplink=(Unknown(),)), 100, 8) == 2 * 800 + 4096


def test_a_clock_may_be_a_little_fast():
    assert fault(duration=1.09) is None
    assert fault(duration=1.11) is not None


def test_only_the_norms_of_accepted_changes_are_recorded():
    norms = RecentNorms(Limits())
    fault(params=START + 1e7, norms=norms)
    fault(num_examples=7, norms=norms)
    assert norms.to_list() == []
    fault(params=START + 1.0, norms=norms)
    assert norms.to_list() == [2.0]


def test_the_limit_follows_the_median_once_half_of_the_norms_are_known():
    norms = RecentNorms(Limits(median_of=6, times_median=10.0, small_norm=0.5, largest_norm=100.0))
    limits = []
    for norm in (1.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0):
        limits.append(norms.limit())
        norms.add(norm)
    assert limits == [100.0, 100.0, 100.0, 10.0, 20.0, 30.0, 30.0, 30.0]


def test_the_limit_is_never_below_the_small_norm_nor_above_the_largest():
    limits = Limits(median_of=2, times_median=10.0, small_norm=0.5, largest_norm=100.0)
    assert RecentNorms(limits, [0.0, 0.0]).limit() == 0.5
    assert RecentNorms(limits, [50.0, 50.0]).limit() == 100.0


def test_restored_norms_continue():
    limits = Limits(median_of=4)
    before = RecentNorms(limits)
    for norm in (1.0, 2.0, 3.0, 4.0, 5.0):
        before.add(norm)
    assert before.to_list() == [2.0, 3.0, 4.0, 5.0]
    assert RecentNorms(limits, before.to_list()).limit() == before.limit() == 3500.0


def test_the_norm_of_a_change_is_computed_in_double_precision():
    large = np.full(3, 1e30, np.float32)
    assert change_norm(large, np.zeros(3, np.float32)) == pytest.approx(np.sqrt(3.0) * 1e30, rel=1e-6)


@pytest.mark.parametrize("name", ["largest_norm", "times_median", "median_of", "faults", "ticket_seconds"])
def test_limits_that_allow_nothing_are_refused(name):
    with pytest.raises(ConfigError, match=f"limits.{name} is 0; it must be positive"):
        Limits(**{name: 0})


@pytest.mark.parametrize("name", ["small_norm", "metrics", "metric_name"])
def test_negative_limits_are_refused(name):
    with pytest.raises(ConfigError, match=f"limits.{name} is -1; it must be zero or positive"):
        Limits(**{name: -1})


def test_a_model_of_millions_may_change_by_millions():
    assert Limits.for_targets(np.array([-5e6, 2.0]), ticket_seconds=9.0) == Limits(largest_norm=5e9, ticket_seconds=9.0)
    assert (
        Limits.for_targets(np.array([1.0])) == Limits.for_targets(None) == Limits.for_targets(np.empty(0)) == Limits()
    )
