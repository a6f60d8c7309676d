"""Indices come back, take the bytes that were said, and no other bytes are read as indices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.kernels import codec_reference as reference
from asyncfed.kernels.index_bits import write_indices
from asyncfed.uplinks.index_formats import BITMAP, _shortest, index_bytes, pack_indices, unpack_indices


@st.composite
def subsets(draw):
    n = draw(st.integers(1, 3000))
    indices = draw(st.sets(st.integers(0, n - 1), min_size=1, max_size=min(n, 60)))
    return np.array(sorted(indices), np.int64), n


@settings(deadline=None)
@given(subsets())
def test_they_come_back(drawn):
    indices, n = drawn
    packed = pack_indices(indices, n)
    assert packed.nbytes == index_bytes(indices.size, n)
    assert np.array_equal(unpack_indices({"i": packed}, "i", indices.size, n), indices)


@settings(deadline=None)
@given(subsets(), st.integers(0, 12))
def test_the_loop_equals_its_twin(drawn, low):
    indices, n = drawn
    num_bytes = (indices.size * (low + 1) + ((n - 1) >> low) + 7) // 8
    packed = np.zeros(num_bytes, np.uint8)
    write_indices(indices, low, packed)
    assert packed.tobytes() == reference.index_bits(indices.tolist(), low, num_bytes)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_bytes_are_refused_or_are_the_only_form_of_what_they_mean(data):
    n = data.draw(st.integers(2, 400))
    count = data.draw(st.integers(1, n))
    size = index_bytes(count, n)
    packed = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), np.uint8)
    try:
        indices = unpack_indices({"i": packed}, "i", count, n)
    except ValueError:
        return
    assert indices.size == count
    assert (np.diff(indices) > 0).all()
    assert 0 <= indices[0] <= indices[-1] < n
    # Beyond what the format writes there is one freedom: none.
    assert pack_indices(indices, n).tobytes() == packed.tobytes()


@pytest.mark.parametrize("count", [1, 10, 300, 1000, 5000, 9999, 10_000])
def test_they_are_near_the_fewest_bits_that_are_possible(count):
    from math import lgamma, log

    n = 10_000
    entropy = (lgamma(n + 1) - lgamma(count + 1) - lgamma(n - count + 1)) / log(2)
    assert entropy <= 8 * index_bytes(count, n)
    assert 8 * index_bytes(count, n) <= max(entropy + 0.6 * count, n) + 24


def test_many_are_a_bit_each():
    assert _shortest(500, 1000) == (125, BITMAP)
