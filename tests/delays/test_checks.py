"""Limits of numbers: what is allowed, and what is refused with its value."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.delays.checks import is_finite_number, require_non_negative, require_positive, require_probability

ALWAYS_REFUSED = [float("nan"), float("inf"), -1.0, "1", None]


@pytest.mark.parametrize("value", ALWAYS_REFUSED)
@pytest.mark.parametrize("check", [require_non_negative, require_positive, require_probability])
def test_what_no_limit_allows(check, value):
    with pytest.raises(ConfigError, match="speed is"):
        check("speed", value)


def test_the_limits_themselves():
    require_non_negative("speed", 0)
    require_probability("speed", 0)
    require_probability("speed", 1)
    require_positive("speed", 1e-300)
    with pytest.raises(ConfigError, match=r"speed is 0; it must be a finite number above zero\. Leave it out\."):
        require_positive("speed", 0, "Leave it out.")
    with pytest.raises(ConfigError, match=r"speed is 1\.5; it must be a number from 0 to 1"):
        require_probability("speed", 1.5)


def test_only_numbers_are_finite_numbers():
    assert [is_finite_number(value) for value in (1, 0.5, float("inf"), "1", None)] == [True, True, False, False, False]
