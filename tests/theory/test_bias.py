"""What uneven participation does to the answer: by hand, by an independent solver, and as bounds that must hold."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.losses import LEAST_SQUARES, LOGISTIC
from asyncfed.problems.objective import Objective
from asyncfed.theory.bias import bias_of_weights, effective_weights, merge_shares, weighted_optimum
from asyncfed.theory.queueing import idle_dispatch


def two_opposed_clients():
    """½(x − 1)² and ½(x + 1)²."""
    return Objective(np.ones((2, 1)), np.array([1.0, -1.0]), np.array([0, 1, 2]), LEAST_SQUARES, np.zeros(1))


def some_clients(loss, clients=4, features=3, penalty=0.1):
    rng = np.random.Generator(np.random.Philox(key=5))
    x = rng.normal(size=(6 * clients, features))
    y = rng.normal(size=6 * clients) + np.repeat(np.arange(clients), 6)
    if loss == LOGISTIC:
        y = np.where(y > np.median(y), 1.0, -1.0)
    return Objective(x, y, np.arange(0, 6 * clients + 1, 6), loss, np.full(features, penalty))


def test_a_client_three_times_as_fast_pulls_the_answer_halfway_to_its_own():
    share = idle_dispatch([1.0, 3.0], in_flight=2).share
    bias = bias_of_weights(two_opposed_clients(), share, strong_convexity=1.0)
    assert bias.optimum == pytest.approx([0.5])
    assert bias.gap == pytest.approx(0.125)
    assert bias.distance == pytest.approx(0.5)
    assert bias.bound == pytest.approx(0.5)  # attained: the curvature is the same everywhere
    assert bias.most_over(1) == [(0, pytest.approx(1.5))]
    assert bias.most_under(1) == [(1, pytest.approx(0.5))]
    assert bias.applies


def test_equal_weights_are_no_bias():
    bias = bias_of_weights(some_clients(LOGISTIC), np.ones(4), strong_convexity=0.1)
    assert bias.gap == pytest.approx(0.0, abs=1e-14)
    assert bias.distance == pytest.approx(0.0, abs=1e-8)
    assert bias.bound < 1e-8
    np.testing.assert_array_equal(bias.representation, np.ones(4))


@pytest.mark.parametrize("loss", [LEAST_SQUARES, LOGISTIC])
def test_the_weighted_optimum_is_that_of_an_independent_solver(loss):
    objective, weights = some_clients(loss), np.array([0.4, 0.3, 0.3, 0.0])

    def value(params):
        margins = objective.x @ params
        losses = (
            0.5 * (margins - objective.y) ** 2 if loss == LEAST_SQUARES else np.log1p(np.exp(-objective.y * margins))
        )
        return weights @ losses.reshape(4, 6).mean(axis=1) + 0.05 * params @ params

    found = minimize(value, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(weighted_optimum(objective, 10 * weights), found, atol=1e-6)


@given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4).filter(lambda w: sum(w) > 0.01))
def test_the_distance_keeps_its_bound_and_the_gap_lies_between_parabolas(weights):
    objective = some_clients(LEAST_SQUARES)
    p = np.array(weights) / sum(weights)
    weighted = Objective(
        objective.x, objective.y, objective.offsets, LEAST_SQUARES, objective.penalty, client_weights=p
    )
    bias = bias_of_weights(objective, weights, strong_convexity=np.linalg.eigvalsh(weighted.hessian(np.zeros(3)))[0])
    assert bias.distance <= bias.bound * (1 + 1e-9) + 1e-9
    low, high = np.linalg.eigvalsh(objective.hessian(np.zeros(3)))[[0, -1]]
    assert 0.5 * low * bias.distance**2 - 1e-9 <= bias.gap <= 0.5 * high * bias.distance**2 + 1e-9


def test_without_strong_convexity_there_is_no_bound():
    assert bias_of_weights(two_opposed_clients(), [3, 1]).bound == inf


def test_every_merge_counts_with_its_weight_and_the_length_of_its_training():
    assert merge_shares([6, 2, 0]).tolist() == [0.75, 0.25, 0.0]
    np.testing.assert_allclose(effective_weights([2, 0, 2], [1.0, 1.0, 0.5], 4), [0.4, 0.0, 0.6, 0.0])
    np.testing.assert_allclose(effective_weights([0, 1], [1.0, 0.5], 2, steps=[1.0, 6.0]), [0.25, 0.75])


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0.1, 2.0)), min_size=1), st.floats(0.1, 10.0))
def test_effective_weights_are_shares_whatever_the_order_and_scale(merges, scale):
    clients, weights = (np.array(column) for column in zip(*merges, strict=True))
    p = effective_weights(clients, weights, 5)
    assert p.sum() == pytest.approx(1)
    np.testing.assert_allclose(effective_weights(clients[::-1], scale * weights[::-1], 5), p, rtol=1e-9)
    equal = effective_weights(clients, np.ones(len(clients)), 5)
    np.testing.assert_allclose(equal, merge_shares(np.bincount(clients, minlength=5)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: merge_shares([0, 0]), "counts are all zero: nothing was merged"),
        (lambda: merge_shares([1, -1]), "one finite number per client, zero or more"),
        (lambda: effective_weights([0, 1], [1.0], 2), "2 clients of merges but 1 weights"),
        (lambda: effective_weights([0, 2], [1.0, 1.0], 2), "must be 0 … 1"),
        (lambda: weighted_optimum(two_opposed_clients(), [np.nan, 1.0]), "weights must be one finite number"),
    ],
)
def test_what_makes_no_weights_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()
