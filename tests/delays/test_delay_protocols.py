"""A timing that is not a duration is the delay model's fault, and the error says so."""

from __future__ import annotations

from math import inf, nan

import pytest

from asyncfed.core.errors import DelayError
from asyncfed.delays import Timing, check_timing


def test_durations_pass() -> None:
    check_timing(Timing(0.0, 0.0, 0.0, False), client=0, ticket=0)
    check_timing(Timing(1.0, 2.0, 3.0, True), client=0, ticket=0)


@pytest.mark.parametrize("bad", [-0.5, nan, inf, -inf])
@pytest.mark.parametrize("part", ["download", "compute", "upload"])
def test_each_part_is_checked(part: str, bad: float) -> None:
    parts = {"download": 1.0, "compute": 1.0, "upload": 1.0, part: bad}
    with pytest.raises(DelayError) as caught:
        check_timing(Timing(**parts, lost=False), client=3, ticket=17)
    text = str(caught.value)
    assert "the delay model gave client 3, ticket 17" in text
    assert f"{part} of {bad} s" in text
    assert "each must be finite and >= 0" in text
