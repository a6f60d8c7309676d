"""The loops of codecs equal their readable twins, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from asyncfed.kernels import codec_reference as reference
from asyncfed.kernels import quantisation
from asyncfed.kernels.largest_entries import largest_entries
from asyncfed.kernels.random_subset import random_subset

ANY = {32: st.floats(width=32), 64: st.floats(width=64)}
FEW = st.sampled_from([0.0, -0.0, 1.0, -1.0, 1.5, np.inf, -np.inf, np.nan, 1e-40])


@st.composite
def vectors(draw, some=None):
    width = draw(st.sampled_from([32, 64]))
    elements = st.one_of(FEW, ANY[width]) if some is None else some
    return draw(arrays(f"f{width // 8}", st.integers(1, 50), elements=elements))


@settings(deadline=None, max_examples=60)
@given(vectors(), st.data())
def test_the_largest_entries(vector, data):
    if data.draw(st.booleans()):
        vector = np.repeat(vector, 5)
    count = data.draw(st.integers(1, vector.size))
    assert largest_entries(vector, count).tolist() == reference.largest_entries(vector, count)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 37, 5000, 9999, 10_000])
def test_the_largest_entries_of_a_long_vector(dtype, count):
    vector = np.random.default_rng(count).normal(size=10_000).astype(dtype)
    vector[::3] = vector[0]
    expected = np.sort(np.argsort(-np.abs(vector), kind="stable")[:count])
    assert np.array_equal(largest_entries(vector, count), expected)


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(1, 60), st.data())
def test_a_random_subset(key, n, data):
    count = data.draw(st.integers(1, n))
    assert random_subset(np.uint64(key), n, count).tolist() == reference.random_subset(key, n, count)


def test_all_subsets_are_equally_likely():
    """20 sets of 3 out of 6, 400 draws expected of each: chi-squared has 19 degrees of freedom."""
    counts = {}
    for key in range(8000):
        drawn = tuple(random_subset(np.uint64(key * 0x9E3779B97F4A7C15 % 2**64 ^ 77), 6, 3).tolist())
        counts[drawn] = counts.get(drawn, 0) + 1
    assert len(counts) == 20
    assert sum((count - 400) ** 2 / 400 for count in counts.values()) < 45


@settings(deadline=None, max_examples=40)
@given(vectors(), st.integers(1, 60))
def test_norms_and_mean_sizes(vector, bucket):
    for loop, twin in (
        (quantisation.bucket_norms, reference.bucket_norms),
        (quantisation.bucket_mean_sizes, reference.bucket_mean_sizes),
    ):
        assert loop(vector, bucket).tolist() == pytest.approx(twin(vector, bucket), rel=0, abs=0, nan_ok=True)


@settings(deadline=None, max_examples=40)
@given(vectors(), st.integers(1, 60), st.integers(1, 40), st.integers(0, 2**64 - 1))
def test_levels(vector, bucket, levels, key):
    scales = np.array(reference.bucket_norms(vector, bucket))
    bits = (2 * levels).bit_length()
    packed = np.empty((vector.size * bits + 7) // 8, np.uint8)
    quantisation.write_levels(vector, scales, bucket, levels, bits, np.uint64(key), packed)
    assert packed.tobytes() == reference.level_bits(vector, scales, bucket, levels, bits, key)
    out = np.empty(vector.size)
    assert quantisation.read_levels(packed, scales, bucket, levels, bits, out)
    expected = reference.levels_of_bits(packed.tobytes(), scales, bucket, levels, bits, vector.size)
    assert np.array_equal(out, expected, equal_nan=True)
