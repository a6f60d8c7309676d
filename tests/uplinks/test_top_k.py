"""The largest entries, no others, in as many bytes as is said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import to_plain
from asyncfed.uplinks import TopK
from asyncfed.uplinks.chain import message_size

changes = arrays.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6))


def through(codec, change):
    return codec.decode(codec.encode({}, change, key=0)[0], change.size, change.dtype)


def test_by_hand():
    message, memory = TopK(fraction=0.4).encode({}, np.array([0.5, -3.0, 0.0, 3.0, 1.0]), key=0)
    assert message["indices"].tolist() == [0b01010]
    assert message["values"].tolist() == [-3.0, 3.0]
    assert memory == {}
    assert TopK(fraction=0.4).decode(message, 5, np.dtype(np.float64)).tolist() == [0.0, -3.0, 0.0, 3.0, 0.0]


def test_equal_sizes_are_taken_by_index():
    assert through(TopK(fraction=0.5), np.array([1.0, -1.0, 1.0, -1.0])).tolist() == [1.0, -1.0, 0.0, 0.0]


@settings(deadline=None)
@given(changes, st.floats(0.01, 1.0))
def test_what_is_kept_is_no_smaller_than_what_is_left_out(change, fraction):
    codec = TopK(fraction=fraction)
    message, _ = codec.encode({}, change, key=0)
    seen = codec.decode(message, change.size, change.dtype)
    order = np.sort(np.argsort(-np.abs(change), kind="stable")[: codec.count(change.size)])
    assert message["values"].tobytes() == change[order].tobytes()
    expected = np.zeros_like(change)
    expected[order] = change[order]
    assert seen.tobytes() == expected.tobytes()
    assert message_size(message) == codec.size(change.size, change.itemsize)


def test_all_of_it_is_the_change_itself_and_needs_no_indices():
    change = np.array([0.1, -0.0, 7.0], np.float32)
    message, _ = TopK(fraction=1.0).encode({}, change, key=0)
    assert message["indices"].size == 0
    assert TopK(fraction=1.0).decode(message, 3, change.dtype).tobytes() == change.tobytes()


def test_what_is_not_finite_is_sent_first():
    seen = through(TopK(fraction=0.4), np.array([1e308, -np.inf, np.nan, 1.0, 2.0]))
    assert np.isnan(seen[2])
    assert seen[1] == -np.inf
    assert not seen[[0, 3, 4]].any()


@pytest.mark.parametrize(("values", "size"), [("same", 8), ("float32", 4), ("bfloat16", 2), ("float16", 2)])
def test_values_may_be_rounded(values, size):
    change = np.array([0.0, np.pi, 0.0, -1e5])
    codec = TopK(fraction=0.5, values=values)
    assert codec.size(4, 8) == 1 + 2 * size
    seen = through(codec, change)
    assert seen[1] == pytest.approx(np.pi, rel=2**-8)
    assert seen[3] == pytest.approx(-65504.0 if values == "float16" else -1e5, rel=2**-8)


@pytest.mark.parametrize("fraction", [0.0, 1.5, -1.0, float("nan")])
def test_a_share_that_is_none_is_refused(fraction):
    with pytest.raises(ConfigError, match=r"uplink.fraction is .*; it must be above 0 and at most 1"):
        TopK(fraction=fraction)


def test_it_is_written_as_it_always_was():
    assert to_plain(TopK()) == to_plain(TopK(values="same")) == {"kind": "top_k", "fraction": 0.01}


def bad_messages():
    good = {"indices": np.array([0b01010], np.uint8), "values": np.array([1.0, 2.0])}
    yield {**good, "indices": np.array([0b01110], np.uint8)}
    yield {**good, "indices": np.array([0b01000], np.uint8)}
    yield {**good, "indices": np.array([0b100010], np.uint8)}
    yield {**good, "indices": np.array([0b01010, 0], np.uint8)}
    yield {**good, "indices": np.array([1], np.int64)}
    yield {**good, "values": np.array([1.0, 2.0], np.float32)}
    yield {**good, "values": np.array([1.0])}


@pytest.mark.parametrize("message", list(bad_messages()))
def test_an_impossible_message_is_refused(message):
    with pytest.raises(ValueError, match=r"indices|values"):
        TopK(fraction=0.4).decode(message, 5, np.dtype(np.float64))
