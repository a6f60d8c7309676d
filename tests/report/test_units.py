import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.analysis.plain_text import format_number
from asyncfed.core.errors import ConfigError
from asyncfed.report.units import choose_scale, format_quantity, format_ratio


@given(st.floats(1.0, 9.9e14))
def test_the_prefix_leaves_a_number_below_a_thousand(joules):
    assert 1 <= joules / choose_scale("energy", joules).divisor < 1000


@pytest.mark.parametrize(
    ("axis", "value", "text"),
    [
        ("bytes", 880.0, "880 B"),
        ("bytes", 12_800.0, "12.8 kB"),
        ("energy", 3.6e6, "3.6 MJ"),
        ("elapsed", 4084.2, "4,084 s"),
        ("round", 14.6, "14.6"),
        ("energy", 0.0, "0 J"),
        ("bytes", float("nan"), "–"),
    ],
)
def test_quantities(axis, value, text):
    assert format_quantity(axis, value) == text


def test_rounds_have_no_unit():
    assert choose_scale("round", 400).label == "rounds"


def test_unknown_axis_is_refused():
    with pytest.raises(ConfigError, match=r'no axis "byte".*Did you mean "bytes"'):
        choose_scale("byte", 1.0)


def test_small_and_missing_numbers():
    assert format_number(1.23456e-7) == "1.23e-07"
    assert format_number(float("inf")) == "–"
    assert format_ratio(9.96) == "10"
