"""The hinge with a parabola of any width in place of its kink."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.kernels import reference
from asyncfed.kernels.client_losses import client_losses
from asyncfed.kernels.losses import HINGE, HUBER_HINGE, SQUARED_HINGE, loss_curvatures, loss_slopes, loss_values
from asyncfed.kernels.sgd import LocalSgd, train_many
from asyncfed.kernels.tasks import Tasks

WIDTHS = st.sampled_from([0.05, 0.5, 1.0, 3.0])


def rows(seed, count=23, d=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, d))
    return x, np.where(x.sum(axis=1) + rng.normal(size=count) > 0, 1.0, -1.0)


@given(width=WIDTHS, margin=st.floats(-5, 5), y=st.sampled_from([-1.0, 1.0]))
def test_its_three_parts(width, margin, y):
    short = 1 - y * margin
    expected = 0.0 if short <= 0 else short**2 / (2 * width) if short <= width else short - width / 2
    m, label = np.array([margin]), np.array([y])
    assert loss_values(HUBER_HINGE, m, label, width)[0] == pytest.approx(expected, rel=1e-12, abs=1e-14)
    slope = 0.0 if short <= 0 else -y * min(short / width, 1.0)
    assert loss_slopes(HUBER_HINGE, m, label, width)[0] == pytest.approx(slope, rel=1e-12, abs=1e-14)
    bend = 1 / width if 0 < short <= width else 0.0
    assert loss_curvatures(HUBER_HINGE, m, label, width)[0] == pytest.approx(bend)
    hinge = loss_values(HINGE, m, label)[0]
    assert hinge - width / 2 - 1e-12 <= loss_values(HUBER_HINGE, m, label, width)[0] <= hinge + 1e-12


def test_very_wide_it_is_the_squared_hinge_of_that_width():
    margins, y = np.linspace(-3, 3, 13), np.ones(13)
    wide = loss_values(HUBER_HINGE, margins, y, 100.0)
    np.testing.assert_allclose(100 * wide, loss_values(SQUARED_HINGE, margins, y), rtol=1e-13)


@given(seed=st.integers(0, 999), width=WIDTHS)
def test_training_is_the_reference_s(seed, width):
    x, y = rows(seed)
    columns = [np.array([value]) for value in (3.0, 5.0, 0.1, 0.5, 0.0)]
    trained = train_many(
        x, y, np.array([0, len(y)]), np.array([0]), np.zeros((1, 4)), np.array([seed], np.uint64), *columns,
        HUBER_HINGE, 0.01, True, True, hinge_width=width,
    )  # fmt: skip
    slow = reference.train_one(
        x, y, np.zeros(4), seed, epochs=3, batch=5, lr=0.1, decay=0.5, loss_code=HUBER_HINGE, l2=0.01, hinge_width=width
    )
    assert trained[0].tobytes() == slow.tobytes()


@given(seed=st.integers(0, 999), width=WIDTHS)
def test_losses_are_the_reference_s(seed, width):
    x, y = rows(seed)
    offsets, params = np.array([0, 7, 23]), np.array([0.4, -0.3, 0.8, 0.1])
    sums, correct = client_losses(x, y, offsets, params, HUBER_HINGE, hinge_width=width)
    slow_sums, slow_correct = reference.client_losses(x, y, offsets, params, HUBER_HINGE, width)
    np.testing.assert_allclose(sums, slow_sums, rtol=1e-12)
    assert correct.tolist() == slow_correct.tolist()


def test_a_divergence_stays_visible():
    x, y = rows(1)
    lost = np.full(4, np.nan)
    assert np.isnan(client_losses(x, y, np.array([0, 23]), lost, HUBER_HINGE)[0]).all()
    sgd = LocalSgd(x, y, np.array([0, 23]), HUBER_HINGE, 0.0, True, True)
    tasks = Tasks(np.array([0]), np.array([1], np.uint64), np.array([[1.0, 5.0, 0.1, 0.0, 0.0]]))
    assert np.isnan(sgd.train(lost[None], tasks)).all()
