"""Compiled random words are those of `core.random`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core import random
from asyncfed.kernels import keyed_words

words = st.integers(0, 2**64 - 1)
numbers = st.integers(0, 2**40)


@given(words)
def test_mixing(word):
    assert int(keyed_words.mix64(np.uint64(word))) == random.mix64(word)


@given(words, numbers, numbers)
def test_keys_and_units(purpose, client, ticket):
    key = random.draw_key(purpose, client, ticket)
    assert int(keyed_words.draw_key(np.uint64(purpose), client, ticket)) == key
    assert keyed_words.keyed_unit(np.uint64(purpose), client, ticket) == random.unit(key)


@given(words, st.integers(1, 2**48))
def test_whole_numbers_below(word, n):
    stream = random.Stream((word - random.GOLDEN) & random.MASK)
    assert keyed_words.below(np.uint64(random.mix64(word)), n) == stream.below(n)
