"""Rows that are made when they are needed: the compiled loop and its readable twin give the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.kernels.drawn_sizes import DrawnSizes
from asyncfed.kernels.population_reference import count_rows_of_client, rows_of_client
from asyncfed.kernels.population_rows import RowKeys, RowLaw, make_rows

KEYS = st.integers(0, 2**64 - 1)
SPREADS = st.sampled_from([0.0, 0.3, 2.0])


@given(
    clients=st.lists(st.integers(0, 10**9), min_size=1, max_size=4),
    rows=st.integers(1, 5),
    features=st.integers(1, 4),
    spreads=st.tuples(SPREADS, SPREADS, SPREADS),
    labels=st.booleans(),
    keys=st.tuples(KEYS, KEYS, KEYS),
)
def test_compiled_rows_are_those_of_the_twin(clients, rows, features, spreads, labels, keys):
    law = RowLaw(np.linspace(-1.0, 2.0, features), 0.7, *spreads, labels)
    words = RowKeys(*map(np.uint64, keys))
    offsets = np.arange(len(clients) + 1) * rows
    x, y = np.empty((offsets[-1], features)), np.empty(offsets[-1])
    make_rows(np.array(clients), offsets, 0, len(clients), x, y, *law, *words)
    for place, client in enumerate(clients):
        own_x, own_y = rows_of_client(client, rows, law, words)
        mine = slice(offsets[place], offsets[place + 1])
        assert np.array_equal(x[mine], own_x)
        assert np.array_equal(y[mine], own_y)


def test_rows_have_the_moments_that_the_law_says():
    law = RowLaw(np.array([1.0, -2.0]), 0.5, 0.3, 0.6, 0.2, False)
    count = 4000
    offsets = np.arange(count + 1) * 10
    x, y = np.empty((offsets[-1], 2)), np.empty(offsets[-1])
    make_rows(np.arange(count), offsets, 0, count, x, y, *law, *map(np.uint64, (1, 2, 3)))
    assert x.mean(axis=0) == pytest.approx([0.0, 0.0], abs=0.05)
    assert (x**2).mean(axis=0) == pytest.approx([1.36, 1.36], rel=0.05)
    residual = y - x @ law.weights - law.bias
    assert (residual**2).mean() == pytest.approx(0.3**2 * 2 * 1.36 + 0.2**2, rel=0.07)


@given(key=KEYS, bounds=st.lists(st.floats(0.0, 1.0), max_size=6).map(sorted), least=st.integers(1, 9))
def test_sizes_are_those_of_the_twin_however_they_are_read(key, bounds, least):
    sizes = DrawnSizes(50, least, np.array(bounds), key)
    expected = [count_rows_of_client(client, key, least, bounds) for client in range(50)]
    assert list(sizes) == [sizes[client] for client in range(50)] == sizes.of(np.arange(50)).tolist() == expected
    assert sum(sizes) == sum(expected)
    assert max(expected) <= sizes.largest
    with pytest.raises(IndexError):
        sizes[50]


def test_the_mean_size_is_that_of_the_law():
    sizes = DrawnSizes(100_000, 5, 1.0 - (5 / np.arange(6, 101)) ** 1.5, key=3)
    assert sum(sizes) / len(sizes) == pytest.approx(sizes.mean, rel=0.02)
