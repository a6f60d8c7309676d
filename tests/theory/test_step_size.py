"""The step size is half of one over the expected smoothness, whatever the loss."""

import numpy as np
import pytest

from asyncfed.theory.batches import expected_smoothness_of
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.step_size import step_size


@pytest.mark.parametrize(("loss", "curvature"), [("least_squares", 1.0), ("logistic", 0.25), ("squared_hinge", 1.0)])
@pytest.mark.parametrize("fit_bias", [True, False])
def test_it_is_half_of_one_over_the_expected_smoothness(loss, curvature, fit_bias):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(40, 3)), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    data = LinearData(x, y, np.array([0, 10, 40]), loss, l2=0.1, fit_bias=fit_bias)
    exact = float(expected_smoothness_of(data, 8).max())
    assert step_size(data, 8, curvature, l2=0.1, fit_bias=fit_bias) == pytest.approx(0.5 / exact)


def test_rows_of_zeros_do_not_divide_by_zero():
    data = LinearData(np.zeros((3, 2)), np.zeros(3), np.array([0, 3]), fit_bias=False)
    assert step_size(data, 2, 1.0, fit_bias=False) == 0.5
