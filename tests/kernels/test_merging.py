"""The merging kernels equal their readable twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from asyncfed.kernels import merging, reference

NUMBERS = st.floats(-1e6, 1e6)
SIZES = st.integers(1, 30)


def vectors(count, dtype):
    return SIZES.flatmap(
        lambda n: st.tuples(*[arrays(dtype, n, elements=st.floats(-1e3, 1e3, width=32)) for _ in range(count)])
    )


@settings(deadline=None)  # the first example compiles the kernel
@given(vectors(2, np.float64), NUMBERS, NUMBERS)
def test_mixed(pair, keep, weight):
    params, payload = pair
    assert np.array_equal(merging.mixed(params, keep, payload, weight), reference.mixed(params, keep, payload, weight))


@settings(deadline=None)  # the first example compiles the kernel
@given(vectors(3, np.float64), NUMBERS)
def test_stepped(three, weight):
    assert np.array_equal(merging.stepped(*three, weight), reference.stepped(*three, weight))


@settings(deadline=None)  # the first example compiles the kernel
@given(vectors(3, np.float64), st.sampled_from([1.0, 0.25, 0.0]), st.floats(0, 1))
def test_slot_moved(three, weight, scale):
    params, slot, payload = three
    twin_slot, before = slot.copy(), params.copy()
    moved = merging.slot_moved(params, slot, payload, weight, scale)
    assert np.array_equal(moved, reference.slot_moved(params, twin_slot, payload, weight, scale))
    assert np.array_equal(slot, twin_slot)
    assert np.array_equal(params, before)
    if weight == 1.0:
        assert np.array_equal(slot, payload)


@settings(deadline=None)  # the first example compiles the kernel
@given(vectors(3, np.float32))
def test_single_precision_stays_single(three):
    params, slot, payload = three
    assert merging.mixed(params, 0.5, payload, 0.5).dtype == np.float32
    assert merging.mixed(params, 0.5, payload, 0.5) == pytest.approx(reference.mixed(params, 0.5, payload, 0.5))
    assert merging.stepped(params, payload, slot, 0.1).dtype == np.float32
    moved = merging.slot_moved(params, slot, payload, 1.0, 0.1)
    assert moved.dtype == np.float32
    assert np.array_equal(slot, payload)
