import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from asyncfed.uplinks.norms import clip_to_norm, exceeds, l2_norm

vectors = st.sampled_from([np.float32, np.float64]).flatmap(
    lambda dtype: arrays.arrays(
        dtype, st.integers(0, 40), elements=st.floats(-(2.0**99), 2.0**99, width=32 if dtype is np.float32 else 64)
    )
)
limits = st.floats(1e-3, 1e6)


@given(vectors)
def test_the_norm_is_numpys(vector):
    assert l2_norm(vector) == pytest.approx(float(np.linalg.norm(vector.astype(np.float64))), rel=1e-12)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e-320, 1.0])
def test_it_is_right_where_squares_are_not_numbers(scale):
    assert l2_norm(np.array([3.0 * scale, 0.0, -4.0 * scale])) == pytest.approx(
        5.0 * scale, rel=1e-2 if scale < 1e-310 else 1e-12
    )


@given(vectors, limits)
def test_what_is_clipped_is_within_the_limit_and_points_the_same_way(vector, limit):
    before = vector.copy()
    clipped = clip_to_norm(vector, limit)
    assert np.array_equal(vector, before)
    assert clipped.dtype == vector.dtype
    assert not exceeds(clipped, limit)
    if l2_norm(vector) <= limit:
        assert clipped is vector
    else:
        assert l2_norm(clipped) == pytest.approx(limit, rel=1e-6)
        assert clipped == pytest.approx(vector.astype(float) * (limit / l2_norm(vector)), rel=1e-5, abs=1e-30)


@given(vectors, limits)
def test_clipping_again_changes_next_to_nothing(vector, limit):
    once = clip_to_norm(vector, limit)
    assert clip_to_norm(once, limit) == pytest.approx(once, rel=1e-6, abs=1e-30)


def test_a_thousandth_too_long_is_too_long():
    for dtype in (np.float32, np.float64):
        assert exceeds(np.array([1.001], dtype), 1.0)
        assert not exceeds(np.array([1.0], dtype), 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_does_not_become_so(bad):
    assert not np.isfinite(clip_to_norm(np.array([1.0, bad]), 1.0)).all()
