"""Keys of noise: which kind they are, and how a journal holds them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.record import to_json
from asyncfed.kernels.noise_keys import is_secret, read_key, secret_bytes, secret_key, write_key

bits = st.integers(0, 2**256 - 1)


@given(bits)
def test_a_secret_key_is_one_whatever_its_bits_are_and_survives_the_journal(value):
    key = secret_key(value)
    assert is_secret(key)
    assert int.from_bytes(secret_bytes(key), "big") == value
    assert read_key(json.loads(to_json({"noise_key": write_key(key)}))["noise_key"]) == key


@given(st.integers(0, 2**64 - 1))
def test_a_keyed_one_is_written_as_the_number_it_is(key):
    assert not is_secret(key)
    assert read_key(json.loads(to_json(write_key(key)))) == key == write_key(key)


@pytest.mark.parametrize("wrong", [-1, 2**64, 1.0, None, True, "", "ab", "x" * 64, "a" * 65, []])
def test_what_is_no_key_is_refused(wrong):
    with pytest.raises(ValueError):
        read_key(wrong)


@pytest.mark.parametrize("wrong", [-1, 2**256])
def test_a_secret_key_has_256_bits(wrong):
    with pytest.raises(ValueError, match="256"):
        secret_key(wrong)
