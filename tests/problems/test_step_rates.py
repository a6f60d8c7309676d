"""The rate of each step is the one its epoch has."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.record import UNSET
from asyncfed.core.types import Work
from asyncfed.problems.step_rates import step_rates


@given(
    rows=st.integers(0, 40),
    epochs=st.integers(1, 5),
    batch=st.integers(1, 50),
    decay=st.sampled_from([0.0, 0.5, 1.0]),
    steps=st.one_of(st.just(UNSET), st.integers(1, 60)),
)
def test_one_rate_a_step_falling_from_epoch_to_epoch(rows, epochs, batch, decay, steps):
    work = Work(epochs=epochs, batch_size=batch, learning_rate=0.3, decay=decay, steps=steps)
    one_by_one = []
    for epoch in range(epochs if steps is UNSET else steps):
        one_by_one += [0.3 / (epoch + 1) ** decay for _ in range(0, rows, batch)]
    asked = len(one_by_one) if steps is UNSET else steps
    np.testing.assert_allclose(step_rates(work, rows), one_by_one[:asked], rtol=1e-14)
