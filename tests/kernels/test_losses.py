"""The losses' names and formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.losses import (
    HINGE,
    HUBER_HINGE,
    LOSS_CODES,
    SQUARED_HINGE,
    loss_code,
    loss_curvatures,
    loss_slopes,
    loss_values,
)

LABEL = st.sampled_from([-1.0, 1.0])


@pytest.mark.parametrize(
    ("name", "value", "slope"),
    [
        ("least_squares", 4.5, -3.0),
        ("mse", 9.0, -6.0),
        ("logistic", np.log(1 + np.exp(2.0)), -1 / (1 + np.exp(-2.0))),
        ("hinge", 3.0, -1.0),
        ("squared_hinge", 4.5, -3.0),
        ("huber_hinge", 2.5, -1.0),
    ],
)
def test_margin_minus_two_target_one_by_hand(name, value, slope):
    margin, y = np.array([-2.0]), np.array([1.0])
    assert loss_values(loss_code(name), margin, y)[0] == pytest.approx(value, rel=1e-15)
    assert loss_slopes(loss_code(name), margin, y)[0] == pytest.approx(slope, rel=1e-15)


@given(code=st.sampled_from(sorted(LOSS_CODES.values())), margin=st.floats(-5, 5), y=LABEL)
def test_slope_is_the_derivative_of_the_value(code, margin, y):
    near_kink = abs(y * margin - 1) < 1e-4 or (code == HUBER_HINGE and abs(margin) < 1e-4)
    step = 1e-5
    around = loss_values(code, np.array([margin - step, margin + step]), np.array([y, y]))
    if not (near_kink and code in (HINGE, SQUARED_HINGE, HUBER_HINGE)):
        slope = loss_slopes(code, np.array([margin]), np.array([y]))[0]
        assert (around[1] - around[0]) / (2 * step) == pytest.approx(slope, abs=1e-8)


@given(code=st.sampled_from([c for c in LOSS_CODES.values() if c != HINGE]), margin=st.floats(-5, 5), y=LABEL)
def test_curvature_is_the_derivative_of_the_slope(code, margin, y):
    if abs(y * margin - 1) < 1e-4 or (code == HUBER_HINGE and abs(margin) < 1e-4):
        return
    step = 1e-5
    around = loss_slopes(code, np.array([margin - step, margin + step]), np.array([y, y]))
    curvature = loss_curvatures(code, np.array([margin]), np.array([y]))[0]
    assert (around[1] - around[0]) / (2 * step) == pytest.approx(curvature, abs=1e-8)


def test_hinge_is_flat_at_its_kink():
    assert loss_slopes(HINGE, np.array([1.0, -1.0]), np.array([1.0, -1.0])).tolist() == [0.0, 0.0]


def test_logistic_neither_overflows_nor_underflows():
    values = loss_values(loss_code("logistic"), np.array([1000.0, -1000.0]), np.array([1.0, 1.0]))
    assert values.tolist() == [0.0, 1000.0]


def test_unknown_loss_suggests_the_nearest():
    with pytest.raises(ConfigError, match=r'loss is "squared_hing".*Did you mean "squared_hinge"'):
        loss_code("squared_hing")


def test_hinge_has_no_curvature():
    with pytest.raises(ConfigError, match="Use squared_hinge"):
        loss_curvatures(HINGE, np.zeros(1), np.ones(1))
