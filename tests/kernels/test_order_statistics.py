"""Medians and trimmed means: the compiled loops equal their readable twins, bit for bit, with any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from asyncfed.kernels import aggregation_reference as reference
from asyncfed.kernels import order_statistics as compiled

VALUES = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0]), st.floats(-1e3, 1e3, width=32))


@st.composite
def weighted_vectors(draw):
    count, dtype = draw(st.integers(1, 12)), draw(st.sampled_from([np.float32, np.float64]))
    vectors = draw(arrays(dtype, (count, draw(st.integers(1, 9))), elements=VALUES))
    weights = np.array(draw(st.lists(st.integers(0, 4), min_size=count, max_size=count).filter(any)), float)
    return vectors, weights / weights.sum(), draw(st.integers(0, (count - 1) // 2))


@settings(deadline=None)  # the first example compiles the kernels
@given(weighted_vectors())
def test_they_equal_their_twins(drawn):
    vectors, weights, trimmed = drawn
    expected = reference.trimmed_mean(vectors, trimmed)
    assert compiled.trimmed_mean(vectors, trimmed, 1).tobytes() == expected.tobytes()
    expected = reference.weighted_trimmed_mean(vectors, weights, trimmed)
    assert compiled.weighted_trimmed_mean(vectors, weights, trimmed, 1).tobytes() == expected.tobytes()
    expected = reference.weighted_median(vectors, weights)
    assert compiled.weighted_median(vectors, weights, 1).tobytes() == expected.tobytes()


@pytest.mark.parametrize("count", [*range(1, 20), 33, 64])
def test_the_comparisons_sort(count):
    """A network that sorts all zeros and ones sorts all numbers; larger ones are tried on permutations."""
    chance = np.random.default_rng(count)
    if count <= 10:
        columns = (np.arange(2**count)[None, :] >> np.arange(count)[:, None]) & 1
    else:
        columns = chance.permuted(np.tile(np.arange(count)[:, None], (1, 200)), axis=0)
    for trimmed in {0, (count - 1) // 2}:
        placed = columns.copy()
        for low, high in compiled.comparisons(count, trimmed):
            pair = placed[[low, high]]
            placed[low], placed[high] = pair.min(axis=0), pair.max(axis=0)
        wanted = slice(trimmed, count - trimmed)
        assert (placed[wanted] == np.sort(columns, axis=0)[wanted]).all()


def test_the_median_needs_fewer_comparisons_than_sorting():
    assert len(compiled.comparisons(11, 5)) < len(compiled.comparisons(11, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_nothing(dtype, monkeypatch):
    monkeypatch.setattr("asyncfed.kernels.threads.SMALL", 1)
    chance = np.random.default_rng(5)
    vectors, weights = chance.normal(size=(7, 3001)).astype(dtype), chance.dirichlet(np.ones(7))
    for threads in (2, 3):
        for name, others in (
            ("trimmed_mean", (2,)),
            ("weighted_trimmed_mean", (weights, 2)),
            ("weighted_median", (weights,)),
        ):
            kernel = getattr(compiled, name)
            assert kernel(vectors, *others, threads).tobytes() == kernel(vectors, *others, 1).tobytes()


def test_plain_medians_are_numpys():
    vectors = np.random.default_rng(1).normal(size=(8, 500))
    assert compiled.trimmed_mean(vectors, 3, 1) == pytest.approx(np.median(vectors, axis=0), rel=1e-15)
