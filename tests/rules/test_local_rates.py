"""The sum of the rates is the one that the steps of training are made with, whatever epochs are cut."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asyncfed.core.types import Work
from asyncfed.kernels.losses import LEAST_SQUARES
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.tasks import Tasks
from asyncfed.rules.local_rates import sum_of_rates


def moved_by_kernel(rows, work, steps):
    """How far the kernel takes the bias in so many steps, or epochs if 0; its gradient is -1 as good as always."""
    model = LocalSgd(np.zeros((rows, 1)), np.full(rows, 1e12), np.array([0, rows]), LEAST_SQUARES, 0.0, True, True)
    numbers = [work.epochs, work.batch_size, work.learning_rate / 1e12, work.decay, 0.0, 0, steps]
    made = np.zeros(1, np.int64)
    tasks = Tasks(np.array([0]), np.array([5], np.uint64), np.array([numbers], float))
    return model.train(np.zeros((1, 2)), tasks, steps_done=made)[0, 1], int(made[0])


@given(
    rows=st.integers(1, 20),
    batch=st.integers(1, 25),
    epochs=st.integers(1, 6),
    steps=st.integers(0, 30),
    decay=st.sampled_from([0.0, 0.5, 1.0, 2.3]),
)
@example(rows=10, batch=4, epochs=3, steps=7, decay=0.5)  # the third epoch is cut after one of its three steps
def test_it_is_the_sum_of_the_kernels_rates(rows, batch, epochs, steps, decay):
    work = Work(epochs=epochs, batch_size=batch, learning_rate=1e-3, decay=decay)
    moved, made = moved_by_kernel(rows, work, steps)
    assert made == (steps or work.count_steps(rows))
    assert moved == pytest.approx(sum_of_rates(work, made, rows), rel=1e-12)


def test_epochs_and_steps_by_hand():
    work = Work(epochs=3, batch_size=4, learning_rate=0.1, decay=1.0)
    assert sum_of_rates(work, 0, 10) == 0.0
    assert sum_of_rates(work, 3, 10) == pytest.approx(0.3)
    assert sum_of_rates(work, 5, 10) == pytest.approx(0.3 + 0.1)  # a cut second epoch, at half the rate
    assert sum_of_rates(work, 9, 10) == pytest.approx(0.3 + 0.15 + 0.1)
    assert sum_of_rates(Work(learning_rate=0.25), 8, 10**6) == 2.0
