"""Distances and weighted sums: the compiled loops equal their readable twins, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.kernels import aggregation_reference as reference
from asyncfed.kernels import distances as compiled


def drawn(count, size, dtype, seed):
    chance = np.random.default_rng(seed)
    weights = chance.dirichlet(np.ones(count)) * (chance.random(count) > 0.2)
    return chance.normal(size=(count, size)).astype(dtype), chance.normal(size=size), weights


@settings(deadline=None, max_examples=30)  # the first example compiles the kernels
@given(st.integers(1, 6), st.sampled_from([1, 15, 16, 17, 2047, 2048, 2049, 4200]), st.booleans(), st.integers(0, 99))
def test_they_equal_their_twins(count, size, single, seed):
    vectors, point, weights = drawn(count, size, np.float32 if single else np.float64, seed)
    expected = reference.squared_distances(vectors, point)
    assert compiled.squared_distances(vectors, point, 1).tobytes() == expected.tobytes()
    expected = reference.pairwise_squared_distances(vectors)
    assert compiled.pairwise_squared_distances(vectors, 1).tobytes() == expected.tobytes()
    assert compiled.weighted_sum(vectors, weights, 1).tobytes() == reference.weighted_sum(vectors, weights).tobytes()


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("asyncfed.kernels.threads.SMALL", 1)
    vectors, point, weights = drawn(5, 9001, np.float64, 0)
    for threads in (2, 3):
        for kernel, others in (
            (compiled.squared_distances, (point,)),
            (compiled.pairwise_squared_distances, ()),
            (compiled.weighted_sum, (weights,)),
        ):
            assert kernel(vectors, *others, threads).tobytes() == kernel(vectors, *others, 1).tobytes()


def test_distances_are_numpys_and_may_be_infinite():
    vectors, point, _ = drawn(4, 3000, np.float64, 2)
    expected = ((vectors - point) ** 2).sum(axis=1)
    assert compiled.squared_distances(vectors, point, 1) == pytest.approx(expected, rel=1e-13)
    vectors[1] = 1e300
    assert compiled.squared_distances(vectors, point, 1)[1] == np.inf


def test_what_has_no_weight_has_no_part():
    vectors = np.array([[1.0, 2.0], [np.inf, 1e308]])
    assert compiled.weighted_sum(vectors, np.array([1.0, 0.0]), 1).tolist() == [1.0, 2.0]
