"""Named arrays as bytes: they come back as they were, and damage is noticed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from asyncfed.store.packed_arrays import pack_arrays, unpack_arrays

kinds = st.sampled_from(["<f4", "<f8", "|i1", "<u2", "|b1", ">f4"])
arrays = st.dictionaries(
    st.text(max_size=8), kinds.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0)))
)


@given(arrays)
def test_they_come_back_as_they_were(given_arrays):
    again = unpack_arrays(pack_arrays(given_arrays))
    assert list(again) == list(given_arrays)
    for name, array in given_arrays.items():
        assert again[name].shape == array.shape
        assert again[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


@given(arrays, st.data())
def test_what_is_cut_off_or_too_long_is_refused(given_arrays, data):
    packed = pack_arrays(given_arrays)
    wrong = data.draw(st.sampled_from([packed[: data.draw(st.integers(0, len(packed) - 1))], packed + b"x"]))
    with pytest.raises(ValueError):
        unpack_arrays(wrong)


def test_objects_are_never_read():
    packed = pack_arrays({"a": np.zeros(2)}).replace(b"<f8", b"|O8")
    with pytest.raises(ValueError):
        unpack_arrays(packed)
