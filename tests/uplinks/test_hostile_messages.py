"""Bytes from outside: each codec decodes them to a change of the right form, or raises ValueError and nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.registry import kinds
from asyncfed.uplinks.chain import decode_one, encode_one

CODECS = [made() for made in kinds("uplink").values() if made.__module__.startswith("asyncfed.")]
TYPES = ["<f2", "<f4", "<f8", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "|b1"]


@st.composite
def anything(draw):
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    count = draw(st.integers(0, 20))
    data = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    array = np.frombuffer(data, dtype)
    return array.reshape(draw(st.sampled_from([(-1,), (1, -1), (count, 1, 1)])))


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_only_value_errors(codec, data):
    size, dtype = data.draw(st.integers(1, 40)), np.dtype(data.draw(st.sampled_from(["f4", "f8"])))
    change = np.linspace(-1.0, 1.0, size, dtype=dtype)
    message, _ = encode_one(codec, codec.init(size, dtype), change, 3, change)
    for name, array in list((message or {}).items()):
        what = data.draw(st.sampled_from(["keep", "other bytes", "anything", "leave out"]), label=name)
        if what == "other bytes":
            scrambled = data.draw(st.binary(min_size=array.nbytes, max_size=array.nbytes))
            message[name] = np.frombuffer(scrambled, array.dtype).reshape(array.shape)
        elif what == "anything":
            message[name] = data.draw(anything())
        elif what == "leave out":
            del message[name]
    try:
        decoded, _ = decode_one(codec, message or {}, size, dtype, codec.init(size, dtype))
    except ValueError:
        return
    assert decoded.shape == (size,)
    assert decoded.dtype == dtype
