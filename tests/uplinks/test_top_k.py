"""The largest entries, no others, in as many bytes as is said."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from asyncfed.core.errors import ConfigError
from asyncfed.uplinks import TopK
from asyncfed.uplinks.chain import message_size

changes = arrays.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6))


def test_by_hand():
    message, memory = TopK(fraction=0.4).encode({}, np.array([0.5, -3.0, 0.0, 3.0, 1.0]), key=0)
    assert message["indices"].tolist() == [1, 3]
    assert message["values"].tolist() == [-3.0, 3.0]
    assert memory == {}
    assert TopK(fraction=0.4).decode(message, 5, np.dtype(np.float64)).tolist() == [0.0, -3.0, 0.0, 3.0, 0.0]


def test_equal_sizes_are_taken_by_index():
    message, _ = TopK(fraction=0.5).encode({}, np.array([1.0, -1.0, 1.0, -1.0]), key=0)
    assert message["indices"].tolist() == [0, 1]


@given(changes, st.floats(0.01, 1.0))
def test_what_is_kept_is_no_smaller_than_what_is_left_out(change, fraction):
    codec = TopK(fraction=fraction)
    message, _ = codec.encode({}, change, key=0)
    seen = codec.decode(message, change.size, change.dtype)
    kept = np.zeros(change.size, bool)
    kept[message["indices"]] = True
    assert np.array_equal(seen[kept], change[kept])
    assert not seen[~kept].any()
    assert np.abs(change[~kept]).max(initial=0.0) <= np.abs(change[kept]).min()
    assert message_size(message) == codec.size(change.size, change.itemsize)


def test_all_of_it_is_the_change_itself():
    change = np.array([0.1, -0.0, 7.0], np.float32)
    message, _ = TopK(fraction=1.0).encode({}, change, key=0)
    assert TopK(fraction=1.0).decode(message, 3, change.dtype).tobytes() == change.tobytes()


@pytest.mark.parametrize("fraction", [0.0, 1.5, -1.0, float("nan")])
def test_a_share_that_is_none_is_refused(fraction):
    with pytest.raises(ConfigError, match=r"uplink.fraction is .*; it must be above 0 and at most 1"):
        TopK(fraction=fraction)


def bad_messages():
    good = {"indices": np.array([1, 3], "<u4"), "values": np.array([1.0, 2.0])}
    yield {**good, "indices": np.array([1, 9], "<u4")}
    yield {**good, "indices": np.array([3, 1], "<u4")}
    yield {**good, "indices": np.array([1, 1], "<u4")}
    yield {**good, "indices": np.array([1, 2, 3], "<u4")}
    yield {**good, "indices": np.array([1, 3], np.int64)}
    yield {**good, "values": np.array([1.0, 2.0], np.float32)}
    yield {**good, "values": np.array([1.0])}


@pytest.mark.parametrize("message", list(bad_messages()))
def test_an_impossible_message_is_refused(message):
    with pytest.raises(ValueError, match=r"indices|values"):
        TopK(fraction=0.4).decode(message, 5, np.dtype(np.float64))
