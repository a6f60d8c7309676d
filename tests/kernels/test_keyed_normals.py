"""Normal numbers from a key: SplitMix64's uniforms through the inverse of the normal distribution function."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.kernels.keyed_normals import keyed_normals, keyed_uniforms

keys = st.integers(0, 2**64 - 1)
KEYS = [draw_key(purpose_key(0, "merge"), 0, version) for version in range(8)]


@given(keys, st.integers(0, 40))
def test_the_uniforms_are_the_streams(key, count):
    stream = Stream(key)
    assert keyed_uniforms(key, count).tolist() == [stream.unit() for _ in range(count)]


@given(keys, st.integers(0, 40), st.integers(0, 40))
def test_more_of_them_begin_as_fewer_do(key, few, more):
    assert keyed_normals(key, few + more)[:few].tobytes() == keyed_normals(key, few).tobytes()


@pytest.mark.parametrize("key", KEYS[:3])
def test_they_are_normal(key):
    draws = keyed_normals(key, 200_000)
    assert abs(draws.mean()) < 4 / np.sqrt(draws.size)
    assert draws.var() == pytest.approx(1.0, abs=4 * np.sqrt(2 / draws.size))
    assert stats.kstest(draws, "norm").pvalue > 1e-4
    assert np.isfinite(draws).all()


def test_neighbouring_draws_and_neighbouring_keys_have_nothing_in_common():
    rows = np.array([keyed_normals(key, 100_000) for key in KEYS])
    correlations = np.corrcoef(rows)[np.triu_indices(len(KEYS), 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(rows.shape[1])
    for row in rows:
        assert abs(np.corrcoef(row[1:], row[:-1])[0, 1]) < 5 / np.sqrt(row.size)
    sums = rows.sum(axis=0) / np.sqrt(len(KEYS))
    assert stats.kstest(sums, "norm").pvalue > 1e-4


def test_the_ends_of_the_range_are_finite():
    """The smallest and the largest uniform number there is, 2**-53 from 0 and from 1."""
    from scipy.special import ndtri

    assert np.isfinite(ndtri([2.0**-53, 1.0 - 2.0**-53])).all()
