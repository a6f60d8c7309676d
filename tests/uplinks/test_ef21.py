"""Client and server keep the same estimate, to the bit, whatever is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from asyncfed.core.errors import ConfigError
from asyncfed.uplinks import EF21, QSGD, ErrorFeedback, TopK, Whole
from asyncfed.uplinks.chain import decode_message, encode_change, init_memory, init_mirror

F8 = np.dtype(np.float64)
NUMBERS = st.floats(-1e6, 1e6, width=32)


def test_by_hand():
    uplink = EF21(codec=TopK(fraction=0.5))
    memory, mirror = uplink.init(2, F8), uplink.init(2, F8)
    for change, seen in [([3.0, 1.0], [3.0, 0.0]), ([3.0, 1.0], [3.0, 1.0]), ([1.0, 0.0], [1.0, 1.0])]:
        message, memory = uplink.encode(memory, np.array(change), 0)
        decoded, mirror = uplink.decode(message, 2, F8, mirror)
        assert decoded.tolist() == seen


@settings(max_examples=60)
@given(
    changes=arrays.arrays(np.float32, st.tuples(st.integers(1, 10), st.just(6)), elements=NUMBERS),
    codec=st.sampled_from([TopK(fraction=0.3), QSGD(), Whole()]),
    data=st.data(),
)
def test_both_sides_are_equal_to_the_bit_through_losses_and_lost_memories(changes, codec, data):
    uplink = EF21(codec=codec)
    memory = mirror = uplink.init(6, changes.dtype)
    for number, change in enumerate(changes):
        fate = data.draw(st.sampled_from(["arrives", "lost", "client forgets"]))
        if fate == "client forgets":  # and says so, with the message
            memory = mirror = uplink.init(6, changes.dtype)
        message, after = uplink.encode(memory, change, number)
        if fate != "lost":
            decoded, mirror = uplink.decode(message, 6, changes.dtype, mirror)
            memory = after
            assert decoded.tobytes() == mirror["state"].tobytes()
        assert memory["state"].tobytes() == mirror["state"].tobytes()


def test_the_estimate_of_a_change_that_stays_the_same_becomes_that_change():
    uplink, change = EF21(codec=TopK(fraction=0.1)), np.linspace(-3.0, 3.0, 50)
    memory = uplink.init(50, F8)
    for _ in range(10):
        _, memory = uplink.encode(memory, change, 0)
    assert memory["state"].tolist() == change.tolist()


def test_before_another_uplink_that_one_sees_the_estimate_and_the_server_keeps_nothing():
    uplinks = (EF21(codec=TopK(fraction=0.5)), Whole())
    memory = init_memory(uplinks, 2, F8)
    assert not init_mirror(uplinks, 2, F8)
    for seen in ([3.0, 0.0], [3.0, 1.0]):
        message, memory = encode_change(uplinks, memory, np.array([3.0, 1.0]), 0, np.zeros(2))
        assert decode_message(uplinks, message, 2, F8)[0].tolist() == seen


def test_after_another_uplink_the_server_keeps_its_estimate():
    uplinks = (TopK(fraction=1.0), EF21(codec=TopK(fraction=0.5)))
    memory, mirror = init_memory(uplinks, 2, F8), init_mirror(uplinks, 2, F8)
    for seen in ([3.0, 0.0], [3.0, 1.0]):
        message, memory = encode_change(uplinks, memory, np.array([3.0, 1.0]), 0, np.zeros(2))
        change, mirror = decode_message(uplinks, message, 2, F8, mirror)
        assert change.tolist() == seen
        assert memory["1/state"].tobytes() == mirror["state"].tobytes()


def test_a_codec_with_a_memory_is_refused():
    with pytest.raises(ConfigError, match="codec is ErrorFeedback, which has a memory of its own"):
        EF21(codec=ErrorFeedback())
