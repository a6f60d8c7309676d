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


def both(name, arrays, *numbers):
    """The kernel's answer and its twin's, each on copies of its own."""
    answers = []
    for module in (merging, reference):
        merged = np.full_like(arrays[0], np.nan)
        getattr(module, name)(*arrays, *numbers, merged)
        answers.append(merged)
    return answers


@settings(deadline=None)  # the first example compiles the kernel
@given(vectors(2, np.float64), NUMBERS, NUMBERS)
def test_mix(pair, keep, weight):
    params, payload = pair
    merged, twin = np.empty_like(params), np.empty_like(params)
    merging.mix(params, keep, payload, weight, merged)
    reference.mix(params, keep, payload, weight, twin)
    assert np.array_equal(merged, twin)


@settings(deadline=None)
@given(vectors(3, np.float64), NUMBERS)
def test_add_step(three, weight):
    merged, twin = both("add_step", three, weight)
    assert np.array_equal(merged, twin)


@settings(deadline=None)
@given(vectors(3, np.float64), st.sampled_from([1.0, 0.25, 0.0]), st.floats(0, 1))
def test_move_slot(three, weight, scale):
    params, slot, payload = three
    slots, twin_slots, before = np.stack([payload, slot]), np.stack([payload, slot]), params.copy()
    moved, twin = np.empty_like(params), np.empty_like(params)
    merging.move_slot(params, slots, 1, payload, weight, scale, moved)
    reference.move_slot(params, twin_slots, 1, payload, weight, scale, twin)
    assert np.array_equal(moved, twin)
    assert np.array_equal(slots, twin_slots)
    assert np.array_equal(params, before)
    assert np.array_equal(slots[0], payload)
    if weight == 1.0:
        assert np.array_equal(slots[1], payload)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2048, 5001])
def test_add_slots(dtype, size):
    rng = np.random.default_rng(size)
    slots, origin, shares = rng.normal(size=(7, size)).astype(dtype), rng.normal(size=size).astype(dtype), rng.random(7)
    ours, twin = np.zeros(size), np.zeros(size)
    merging.add_slots(slots, origin, shares, ours)
    reference.add_slots(slots, origin, shares, twin)
    assert np.array_equal(ours, twin)


@settings(deadline=None)
@given(vectors(2, np.float32))
def test_single_precision(pair):
    params, payload = pair
    merged, twin = np.empty_like(params), np.empty_like(params)
    merging.mix(params, 0.5, payload, 0.5, merged)
    reference.mix(params, 0.5, payload, 0.5, twin)
    assert merged == pytest.approx(twin)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_in_place_comes_to_the_same_bits(dtype, size):
    params, model, start = np.random.default_rng(size).normal(size=(3, size)).astype(dtype)
    merged = np.empty_like(params)
    for name, arguments in (("mix", (0.9, model, 0.1)), ("add_step", (model, start, 0.3))):
        getattr(merging, name)(params, *arguments, merged)
        changed, twin = params.copy(), params.copy()
        getattr(merging, f"{name}_into")(changed, *arguments)
        getattr(reference, f"{name}_into")(twin, *arguments)
        assert changed.tobytes() == merged.tobytes()
        assert np.array_equal(twin, changed) if dtype == np.float64 else np.allclose(twin, changed, atol=1e-6)
