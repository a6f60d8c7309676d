"""Fixed-point sums against exact integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.kernels import fixed_point, fixed_point_reference
from asyncfed.kernels.fixed_point import MOST_BITS, Rounding
from asyncfed.kernels.keyed_normals import keyed_uniforms

values = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(values, min_size=0, max_size=4),
    fraction_bits=st.integers(-10, 60),
    bits=st.integers(1, MOST_BITS),
    rounding=st.sampled_from(["nearest", "stochastic", "toward_zero"]),
)
def test_it_is_what_exact_integers_give(
    rows: list[list[float]], fraction_bits: int, bits: int, rounding: Rounding
) -> None:
    uniforms = [keyed_uniforms(key, 3) for key in range(len(rows))]
    wholes = [
        fixed_point.whole_multiples(np.array(row), fraction_bits, rounding, drawn)
        for row, drawn in zip(rows, uniforms, strict=True)
    ]
    decoded = fixed_point.sum_modulo(wholes, 3, bits)
    wrapped = 0
    for place in range(3):
        numbers = [
            fixed_point_reference.whole_multiple(row[place], fraction_bits, rounding, float(drawn[place]))
            for row, drawn in zip(rows, uniforms, strict=True)
        ]
        expected, is_wrapped = fixed_point_reference.sum_modulo(numbers, bits)
        assert decoded[place] == expected
        wrapped += is_wrapped
    assert fixed_point.count_wrapped(wholes, decoded, bits) == wrapped


def test_stochastic_rounding_is_right_on_average() -> None:
    value, count = 0.3, 40_000
    drawn = fixed_point.whole_multiples(np.full(count, value), 0, "stochastic", keyed_uniforms(5, count))
    assert set(drawn.tolist()) == {0.0, 1.0}
    assert drawn.mean() == pytest.approx(value, abs=4 * (0.3 * 0.7 / count) ** 0.5)


def test_rounding_toward_zero_lengthens_nothing() -> None:
    vector = keyed_uniforms(9, 100) - 0.5
    assert np.all(np.abs(fixed_point.whole_multiples(vector, 3, "toward_zero")) <= np.abs(vector) * 8)
