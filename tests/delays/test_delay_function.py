"""A user's function becomes a delay model."""

from __future__ import annotations

import numpy as np
import pytest

from asyncfed.core.errors import DelayError
from asyncfed.core.types import Work
from asyncfed.delays import CPU_WATTS, DelayModel, FunctionDelays, Timing, check_timing


def test_the_function_decides_the_compute_seconds() -> None:
    model: DelayModel = FunctionDelays(lambda client, ticket, work: client + 10 * ticket + 100 * work.epochs).bind(4, 0)
    timing = model.timing(2, 3, Work(epochs=5), 50)
    assert timing == Timing(0.0, 532.0, 0.0, False)
    assert model.lost_after(2, 3, timing) == 532.0
    assert model.finish_compute(2, 7.0, 3.0) == 10.0


def test_watts_are_those_given() -> None:
    assert FunctionDelays(lambda *_: 1.0).bind(1, 0).watts(0) == CPU_WATTS
    assert FunctionDelays(lambda *_: 1.0, watts=9.0).bind(1, 0).watts(0) == 9.0


def test_numpy_numbers_become_plain_ones() -> None:
    timing = FunctionDelays(lambda *_: np.float32(0.5)).bind(1, 0).timing(0, 0, Work(), 1)
    assert type(timing.compute) is float


def test_an_answer_that_is_no_number_is_the_functions_fault() -> None:
    model = FunctionDelays(lambda client, ticket, work: None).bind(1, 0)  # type: ignore[arg-type, return-value]
    with pytest.raises(DelayError, match="the delay function answered None for client 4, ticket 5; it must return"):
        model.timing(4, 5, Work(), 1)


def test_a_negative_answer_is_left_to_the_engines_check() -> None:
    timing = FunctionDelays(lambda *_: -1.0).bind(1, 0).timing(0, 0, Work(), 1)
    with pytest.raises(DelayError, match=r"compute of -1\.0 s"):
        check_timing(timing, 0, 0)
