"""Nothing is lost: what was sent and what is left make up all changes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from asyncfed.uplinks import ErrorFeedback, TopK

DYADIC = st.integers(-64, 64).map(lambda n: n / 8)
FEEDBACK = ErrorFeedback(codec=TopK(fraction=0.3))


def test_by_hand():
    feedback, dtype = ErrorFeedback(codec=TopK(fraction=0.5)), np.dtype(np.float64)
    memory = feedback.init(2, dtype)
    message, memory = feedback.encode(memory, np.array([3.0, 1.0]), key=0)
    assert message["values"].tolist() == [3.0]
    assert memory["residual"].tolist() == [0.0, 1.0]
    message, memory = feedback.encode(memory, np.array([1.5, 1.0]), key=1)
    assert feedback.decode(message, 2, dtype).tolist() == [0.0, 2.0]
    assert memory["residual"].tolist() == [1.5, 0.0]


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 8), st.just(7)), elements=DYADIC), st.data())
def test_sent_and_residual_are_the_sum_of_the_changes_whatever_is_lost(changes, data):
    """Exactly, on numbers whose sums are exact. A message that is lost leaves the memory as it was, and so does not
    count as a change either: its training is done again from another model."""
    memory, sent, accepted = FEEDBACK.init(7, changes.dtype), np.zeros(7), np.zeros(7)
    for change in changes:
        before = {name: array.copy() for name, array in memory.items()}
        message, after = FEEDBACK.encode(memory, change, key=0)
        assert all(np.array_equal(memory[name], before[name]) for name in before)
        if data.draw(st.booleans(), label="arrives"):
            memory, accepted = after, accepted + change
            sent = sent + FEEDBACK.decode(message, 7, changes.dtype)
    assert np.array_equal(sent + memory["residual"], accepted)


def test_the_size_is_that_of_the_codec():
    assert FEEDBACK.size(100, 4) == TopK(fraction=0.3).size(100, 4) == 133
