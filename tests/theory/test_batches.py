"""The smoothness of mini-batches, by enumeration of every batch."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.losses import loss_slopes, loss_values
from asyncfed.theory.batches import (
    batch_smoothness,
    batch_strong_convexity,
    expected_smoothness,
    expected_smoothness_of,
)
from asyncfed.theory.curvature import client_curvature, client_smoothness, largest_row_smoothness
from asyncfed.theory.linear_data import LinearData

LARGEST = {"least_squares": 1.0, "mse": 2.0, "logistic": 0.25, "squared_hinge": 1.0, "huber_hinge": 1.0}
SETTINGS = {
    "seed": st.integers(0, 9999),
    "loss": st.sampled_from(sorted(LARGEST)),
    "batch": st.integers(1, 7),
    "free": st.booleans(),
}


def random_data(seed, loss, sizes=(6, 1, 4), d=2, **model):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(sizes), d))
    y = np.where(x.sum(axis=1) + rng.normal(size=len(x)) > 0, 1.0, -1.0)
    return LinearData(x, y, np.cumsum([0, *sizes]), loss, **model)


def rows_of(data, client):
    rows = slice(data.offsets[client], data.offsets[client + 1])
    return np.column_stack([data.x[rows], np.ones(data.sizes[client])]), data.y[rows]


def value_and_gradient(data, z, y, point):
    margins = z @ point
    value = np.mean(loss_values(data.loss_code, margins, y)) + 0.5 * data.penalty @ point**2
    return value, loss_slopes(data.loss_code, margins, y) @ z / len(y) + data.penalty * point


def test_of_the_paper_sized_client():
    assert expected_smoothness(200, 32, 12.0, 182.0) == pytest.approx(16.4849, rel=1e-5)


@given(**SETTINGS)
@settings(max_examples=50, deadline=None)
def test_expected_smoothness_over_every_batch(seed, loss, batch, free):
    data = random_data(seed, loss, l2=0.2, penalize_bias=not free)
    found = expected_smoothness_of(data, batch)
    p, q = 2 * np.random.default_rng(seed + 1).normal(size=(2, 3))
    for client, size in enumerate(data.sizes):
        z, y = rows_of(data, client)
        (at_p, _), (at_q, slope) = (value_and_gradient(data, z, y, point) for point in (p, q))
        squares = []
        for chosen in map(list, combinations(range(size), min(batch, size))):
            rise = (
                value_and_gradient(data, z[chosen], y[chosen], p)[1]
                - value_and_gradient(data, z[chosen], y[chosen], q)[1]
            )
            squares.append(rise @ rise)
        assert np.mean(squares) <= 2 * found[client] * (at_p - at_q - slope @ (p - q)) * (1 + 1e-9)


@given(**SETTINGS)
@settings(max_examples=50, deadline=None)
def test_no_batch_is_less_smooth_or_less_convex(seed, loss, batch, free):
    data = random_data(seed, loss, l2=0.2, penalize_bias=not free)
    bound, floor = batch_smoothness(data, batch), batch_strong_convexity(data, batch)
    for client, size in enumerate(data.sizes):
        z, _ = rows_of(data, client)
        counts = {min(batch, size)} | ({size % batch} if size % min(batch, size) else set())
        for chosen in (list(chosen) for count in counts for chosen in combinations(range(size), count)):
            hessian = LARGEST[loss] * z[chosen].T @ z[chosen] / len(chosen) + np.diag(data.penalty)
            values = np.linalg.eigvalsh(hessian)
            assert values[-1] <= bound[client] * (1 + 1e-12)
            assert values[0] >= floor[client] - 1e-12
        assert bound[client] <= largest_row_smoothness(data)[client] * (1 + 1e-12)


def test_from_single_rows_to_the_whole_client():
    data = random_data(3, "mse", l2=0.1)
    convex, smooth = client_curvature(data)
    np.testing.assert_allclose(expected_smoothness_of(data), largest_row_smoothness(data))
    np.testing.assert_allclose(expected_smoothness_of(data, 99), client_smoothness(data))
    np.testing.assert_allclose(batch_smoothness(data, 99), smooth)
    np.testing.assert_allclose(batch_strong_convexity(data, 99), convex)
    np.testing.assert_allclose(batch_strong_convexity(data, 5), [0.1, convex[1], convex[2]])


def test_a_short_last_batch_is_counted_in_unless_it_is_dropped():
    data = random_data(3, "least_squares", sizes=(7,))
    with_short, without = batch_smoothness(data, 3), batch_smoothness(data, 3, short_batches=False)
    assert with_short == pytest.approx(largest_row_smoothness(data))
    assert without < with_short


def test_the_plain_hinge_and_wrong_sizes():
    data = random_data(1, "hinge")
    assert np.isinf(expected_smoothness_of(data, 2)).all()
    assert np.isinf(batch_smoothness(data, 2)).all()
    with pytest.raises(ConfigError, match=r"batch_size is 1.5; it must be a whole number"):
        batch_smoothness(random_data(1, "mse"), 1.5)
