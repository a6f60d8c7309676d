"""Passes over a client's data, and the part of a work that was done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import DelayError
from asyncfed.core.types import Work
from asyncfed.delays import completed_fraction, count_passes


def test_epochs_are_passes_whatever_the_rows() -> None:
    assert [count_passes(Work(epochs=3), rows) for rows in (0, 1, 100)] == [3, 3, 3]


@pytest.mark.parametrize(
    ("rows", "batch_size", "steps", "passes"),
    [(100, 32, 4, 1.0), (100, 32, 6, 1.5), (96, 32, 1, 1 / 3), (5, 32, 7, 7.0), (0, 32, 7, 0.0)],
)
def test_steps_are_passes_by_the_steps_of_an_epoch(rows: int, batch_size: int, steps: int, passes: float) -> None:
    assert count_passes(Work(epochs=9, batch_size=batch_size, steps=steps), rows) == passes


@given(st.integers(1, 20), st.integers(1, 64), st.integers(1, 1000))
def test_as_many_steps_as_epochs_take_are_as_many_passes(epochs: int, batch_size: int, rows: int) -> None:
    in_epochs = Work(epochs=epochs, batch_size=batch_size)
    in_steps = Work(batch_size=batch_size, steps=in_epochs.count_steps(rows))
    assert count_passes(in_steps, rows) == epochs


def test_the_part_done_is_that_of_the_steps() -> None:
    work = Work(epochs=10, batch_size=50, patience=2)
    assert [completed_fraction(work, 100, steps) for steps in (0, 8, 20)] == [0.0, 0.4, 1.0]
    assert completed_fraction(Work(steps=8, patience=1), 100, 2) == 0.25
    assert completed_fraction(work, 0, 0) == 1.0


@pytest.mark.parametrize("steps", [-1, 21])
def test_steps_that_were_not_asked_for_are_refused(steps: int) -> None:
    with pytest.raises(DelayError, match=rf"100 rows made {steps} steps of a work of 20; they must be from 0 to 20"):
        completed_fraction(Work(epochs=10, batch_size=50), 100, steps)
