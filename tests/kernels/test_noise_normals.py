"""Normal numbers from a key of either kind: SplitMix64 for 64 bits, SHAKE-256 for a secret key."""

import hashlib
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from asyncfed.kernels.keyed_normals import keyed_normals
from asyncfed.kernels.noise_keys import secret_key
from asyncfed.kernels.noise_normals import noise_normals, secret_uniforms

secrets = st.integers(0, 2**256 - 1).map(secret_key)


def normals_one_by_one(key: int, count: int, draw: int) -> list[float]:
    """What the text says, a number at a time: 8 bytes of SHAKE-256, their upper 52 bits, the normal quantile."""
    text = b"asyncfed noise" + (key - 2**256).to_bytes(32, "big") + draw.to_bytes(8, "little")
    stream = hashlib.shake_256(text).digest(8 * count)
    words = [int.from_bytes(stream[8 * i : 8 * i + 8], "little") >> 12 for i in range(count)]
    return [NormalDist().inv_cdf((word + 0.5) / 2**52) for word in words]


@given(secrets, st.integers(0, 20), st.integers(0, 2**40))
def test_it_is_its_reference(key, count, draw):
    np.testing.assert_allclose(noise_normals(key, count, draw), normals_one_by_one(key, count, draw), rtol=1e-12)


@given(st.integers(0, 2**64 - 1), st.integers(0, 20))
def test_keys_of_64_bits_give_what_they_always_gave(key, count):
    assert noise_normals(key, count).tobytes() == keyed_normals(key, count).tobytes()


@given(secrets | st.integers(0, 2**64 - 1), st.integers(0, 30), st.integers(0, 30), st.integers(0, 3))
def test_more_of_them_begin_as_fewer_do(key, few, more, draw):
    assert noise_normals(key, few + more, draw)[:few].tobytes() == noise_normals(key, few, draw).tobytes()


@settings(max_examples=20)
@given(secrets, st.integers(0, 255))
def test_one_bit_of_the_key_changes_everything(key, bit):
    ours, theirs = noise_normals(key, 4000), noise_normals(key ^ 1 << bit, 4000)
    assert abs(np.corrcoef(ours, theirs)[0, 1]) < 6 / np.sqrt(4000)


@pytest.mark.parametrize("key", [secret_key(0), secret_key(2**256 - 1), secret_key(3**100), 3**30])
def test_they_are_normal_and_the_draws_of_a_key_independent(key):
    rows = np.array([noise_normals(key, 100_000, draw) for draw in range(4)])
    for row in rows:
        assert abs(row.mean()) < 4 / np.sqrt(row.size)
        assert row.var() == pytest.approx(1.0, abs=4 * np.sqrt(2 / row.size))
        assert stats.kstest(row, "norm").pvalue > 1e-4
        assert abs(np.corrcoef(row[1:], row[:-1])[0, 1]) < 5 / np.sqrt(row.size)
    assert np.abs(np.corrcoef(rows)[np.triu_indices(4, 1)]).max() < 5 / np.sqrt(rows.shape[1])


def test_uniform_numbers_are_strictly_between_0_and_1():
    uniforms = secret_uniforms(secret_key(1), 100_000)
    assert 0 < uniforms.min() < 1e-4 < 1 - 1e-4 < uniforms.max() < 1
