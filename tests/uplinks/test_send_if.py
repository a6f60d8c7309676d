"""What is too short is kept, and sent once it is long enough."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from asyncfed.core.errors import ConfigError
from asyncfed.uplinks import ErrorFeedback, SendIf, TopK

F8 = np.dtype(np.float64)
DYADIC = st.integers(-64, 64).map(lambda n: n / 8)
ORIGIN = np.zeros(2)


def send_all(uplink, changes, start=ORIGIN):
    """What the server makes of each change; None where nothing was sent. And the last memory."""
    memory, seen = uplink.init(start.size, F8), []
    for change in changes:
        message, memory = uplink.encode(memory, np.array(change, float), 0, start)
        seen.append(None if message is None else uplink.decode(message, start.size, F8).tolist())
    return seen, memory


def test_absolute():
    seen, memory = send_all(SendIf(threshold=2.0, measure="absolute"), [[1, 0], [1, 0], [1, 0], [0, 5]])
    assert seen == [None, None, [3.0, 0.0], [0.0, 5.0]]  # a length of exactly 2 does not exceed it
    assert memory["residual"].tolist() == [0.0, 0.0]


def test_relative_to_the_model_it_starts_from():
    uplink = SendIf(threshold=0.5, measure="relative")
    assert send_all(uplink, [[1, 0], [1, 0], [1, 0]], np.array([3.0, 4.0]))[0] == [None, None, [3.0, 0.0]]
    assert send_all(uplink, [[1e-9, 0]])[0] == [[1e-9, 0.0]]  # from zero, anything is worth sending


def test_adaptive_compares_with_the_changes_before():
    uplink = SendIf(threshold=2.0, rate=0.5)
    changes = [[1, 0], [1, 0], [1, 0], [1, 0], [4, 0], [1, 0]]
    # m before each: none, 1, 1, 1, 1, 2.5
    assert send_all(uplink, changes)[0] == [[1.0, 0.0], None, None, [3.0, 0.0], [4.0, 0.0], None]


def test_changes_that_shrink_are_still_sent():
    seen, _ = send_all(SendIf(threshold=2.0), [[0.9**k, 0] for k in range(60)])
    assert sum(message is not None for message in seen) >= 10


def test_nobody_is_silent_for_longer_than_allowed():
    seen, memory = send_all(SendIf(threshold=1e9, measure="absolute", at_most=2), [[1, 0]] * 7)
    assert seen == [None, None, [3.0, 0.0], None, None, [3.0, 0.0], None]
    assert memory["in_a_row"].tolist() == [1]


def test_what_is_not_finite_is_sent_so_that_the_server_refuses_it():
    for bad in (np.nan, np.inf):
        for measure in ("absolute", "adaptive"):
            assert send_all(SendIf(threshold=1e300, measure=measure), [[1, 1], [bad, 0]])[0][1] is not None


@settings(max_examples=50)
@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 10), st.just(7)), elements=DYADIC),
    st.sampled_from(["absolute", "relative", "adaptive"]),
    st.data(),
)
def test_sent_and_residual_are_the_sum_of_the_changes_whatever_is_lost_or_skipped(changes, measure, data):
    uplink, start = SendIf(codec=TopK(fraction=0.3), threshold=1.5, measure=measure), np.full(7, 2.0)
    memory, sent, accepted = uplink.init(7, F8), np.zeros(7), np.zeros(7)
    for change in changes:
        message, after = uplink.encode(memory, change, 0, start)
        if data.draw(st.booleans(), label="arrives"):
            memory, accepted = after, accepted + change
            sent = sent if message is None else sent + uplink.decode(message, 7, F8)
    assert np.array_equal(sent + memory["residual"], accepted)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"threshold": -1.0}, "threshold is -1.0"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"at_most": 0}, "at_most is 0"),
        ({"codec": ErrorFeedback()}, "codec is ErrorFeedback, which has a memory of its own"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        SendIf(**settings)
