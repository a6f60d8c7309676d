"""What clients measure: the numbers themselves, the same on a shard, and refusals of what cannot be measured."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.problems.client_measurements import check_measurable, measure_client
from asyncfed.problems.row_losses import client_row_losses

RNG = np.random.default_rng(5)
X = [RNG.normal(size=(n, 3)) for n in (5, 1, 8)]
START, TRAINED = RNG.normal(size=4), RNG.normal(size=4)


def linear(loss, dtype=np.float64):
    y = [np.where(x[:, 0] > 0, 1.0, -1.0) for x in X]
    return af.problems.Linear(af.data.Clients.from_lists(X, y, dtype=np.dtype(dtype).name), loss, 0.3)


@pytest.mark.parametrize("loss", ["least_squares", "logistic", "hinge"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_losses_of_a_client_are_those_of_all_rows_and_of_its_shard(loss, dtype):
    problem, params = linear(loss, dtype), START.astype(dtype)
    every = problem.row_losses(params, "training")
    for client in range(3):
        rows = client_row_losses(problem, params, client)
        expected = every.loss[every.offsets[client] : every.offsets[client + 1]]
        np.testing.assert_allclose(rows, expected, rtol=1e-6 if dtype == np.float32 else 1e-12)
        assert problem.shard(client).row_losses(params).tobytes() == rows.tobytes()


def test_each_number_is_what_it_says():
    problem = linear("least_squares")
    work = Work(loss=True, start_loss=True, start_rms=True)
    residuals = X[2] @ START[:3] + START[3] - np.where(X[2][:, 0] > 0, 1.0, -1.0)
    measured = measure_client(
        work,
        START,
        TRAINED,
        lambda params: problem.client_loss(params, 2),
        lambda params: client_row_losses(problem, params, 2),
    )
    assert list(measured) == ["loss", "start_loss", "start_rms"]
    assert measured["loss"] == problem.client_loss(TRAINED, 2)
    assert measured["start_loss"] == problem.client_loss(START, 2)
    assert measured["start_rms"] == pytest.approx(np.sqrt(np.mean((0.5 * residuals**2) ** 2)), rel=1e-12)


def test_a_problem_without_row_losses_is_refused_before_the_run():
    class Plain:
        def init(self, seed):
            return np.zeros(2)

    check_measurable(Plain(), Work(start_loss=True))
    with pytest.raises(ConfigError, match="losses of single rows, which Plain does not measure"):
        check_measurable(Plain(), Work(start_rms=True))


def test_settings_that_are_left_out_are_not_written():
    assert "start" not in str(af.to_toml(af.Experiment())).replace("start =", "")
    work = Work(start_rms=True)
    assert af.core.record.from_plain(af.core.record.to_plain(work), Work) == work
