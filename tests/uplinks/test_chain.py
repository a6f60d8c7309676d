"""Uplinks one after another: only the last message is sent, each sees what the one before leaves of the change."""

import numpy as np
import pytest

from asyncfed.core.random import draw_key
from asyncfed.core.record import Config
from asyncfed.uplinks import ErrorFeedback, TopK
from asyncfed.uplinks.chain import declared_size, decode_message, encode_change, init_memory, message_size

DTYPE = np.dtype(np.float64)


class Halved(Config, tag_field="kind", tag="halved"):
    """Half of the change, in full; it notes the key it was given in its memory."""

    remembers = True

    def init(self, num_params, dtype):
        return {"keys": np.zeros(1, np.uint64)}

    def size(self, num_params, itemsize):
        return num_params * itemsize

    def encode(self, memory, change, key):
        return {"change": change / 2}, {"keys": np.array([key], np.uint64)}

    def decode(self, message, num_params, dtype):
        return message["change"]


class Silent(Halved, tag_field="kind", tag="silent"):
    """Never sends anything, and does not know beforehand that it will not."""

    def size(self, num_params, itemsize):
        return None

    def encode(self, memory, change, key):
        return None, {"keys": np.array([7], np.uint64)}


def test_each_sees_what_the_server_would_see_of_the_one_before():
    uplinks = (Halved(), TopK(fraction=0.5))
    message, memory = encode_change(uplinks, init_memory(uplinks, 2, DTYPE), np.array([8.0, 2.0]), 5, np.zeros(2))
    assert sorted(message) == ["indices", "values"]
    assert decode_message(uplinks, message, 2, DTYPE)[0].tolist() == [4.0, 0.0]
    assert memory["0/keys"][0] == draw_key(5, 0, 0)


def test_memories_are_kept_apart():
    uplinks = (ErrorFeedback(codec=TopK(fraction=0.5)), ErrorFeedback(codec=TopK(fraction=0.5)))
    memory = init_memory(uplinks, 2, DTYPE)
    assert sorted(memory) == ["0/residual", "1/residual"]
    _, after = encode_change(uplinks, memory, np.array([8.0, 2.0]), 0, np.zeros(2))
    assert after["0/residual"].tolist() == [0.0, 2.0]
    assert after["1/residual"].tolist() == [0.0, 0.0]
    assert memory["0/residual"].tolist() == [0.0, 0.0]


def test_nothing_worth_sending():
    uplinks = (Silent(), ErrorFeedback())
    message, memory = encode_change(uplinks, init_memory(uplinks, 3, DTYPE), np.ones(3), 0, np.zeros(3))
    assert message is None
    assert memory["0/keys"][0] == 7
    assert not memory["1/residual"].any()
    assert not decode_message(uplinks, None, 3, DTYPE)[0].any()
    assert message_size(None) == 1


def test_the_size_is_the_last_ones_and_unknown_if_any_is():
    assert declared_size((Halved(), TopK(fraction=0.1)), 100, 8) == 87
    assert declared_size((Silent(), TopK(fraction=0.1)), 100, 8) is None


def test_a_message_that_decodes_to_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"it decodes to float64 numbers of shape \(2,\); \(3,\) of float64 are due"):
        decode_message((Halved(),), {"change": np.zeros(2)}, 3, DTYPE)
