"""Losses of single rows agree with the means that problems report, and their standard error with the textbook's."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.problems.row_losses import MeasuresRows, RowLosses, standard_error

LABELLED = ("logistic", "hinge", "squared_hinge", "huber_hinge")


@pytest.mark.parametrize("loss", ["least_squares", "mse", *LABELLED])
@pytest.mark.parametrize("fit_bias", [True, False])
def test_means_of_row_losses_are_the_scores(loss, fit_bias):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    y = np.where(y > 0, 1.0, -1.0) if loss in LABELLED else y
    clients = af.data.Clients.from_lists([x[:9], x[9:10], x[10:]], [y[:9], y[9:10], y[10:]])
    problem = af.problems.Linear(clients, loss, 0.1, fit_bias=fit_bias)
    assert isinstance(problem, MeasuresRows)
    one, own = rng.normal(size=problem.num_params), rng.normal(size=(3, problem.num_params))
    for params in (one, own):
        rows = problem.row_losses(params, "training")
        means = [rows.loss[a:b].mean() for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
        np.testing.assert_allclose(means, problem.client_scores(params, "training").loss, rtol=1e-12)


def test_the_standard_error_is_that_of_a_mean_of_means():
    first, second = np.array([1.0, 2.0, 6.0]), np.array([4.0, 4.5])
    rows = RowLosses(np.concatenate([first, second]), np.array([0, 3, 3, 5]))
    by_hand = np.sqrt(first.var(ddof=1) / 3 + second.var(ddof=1) / 2) / 2
    assert standard_error(rows) == pytest.approx(by_hand)


def test_a_single_row_has_the_pooled_variance():
    first = np.array([1.0, 3.0])
    rows = RowLosses(np.append(first, 7.0), np.array([0, 2, 3]))
    assert standard_error(rows) == pytest.approx(np.sqrt(2.0 / 2 + 2.0 / 1) / 2)


def test_without_rows_there_is_no_error():
    assert np.isnan(standard_error(RowLosses(np.empty(0), np.array([0, 0]))))


def test_clients_of_one_row_each_do_not_seem_certain():
    losses = np.random.default_rng(0).exponential(size=50)
    rows = RowLosses(losses, np.arange(51))
    assert standard_error(rows) == pytest.approx(losses.std(ddof=1) / np.sqrt(50))
    assert np.isnan(standard_error(RowLosses(losses[:1], np.array([0, 1]))))
