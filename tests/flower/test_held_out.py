"""The server's side of data it does not have."""

import numpy as np
import pytest

from asyncfed.core.errors import ProtocolError
from asyncfed.core.types import Work
from asyncfed.flower.held_out import HeldOutProblem
from asyncfed.flower.node_program import build_problem
from asyncfed.problems.protocol import Jobs


def test_held_out_rows_measure_the_model_and_nothing_else(experiment):
    test = build_problem(experiment, np.eye(10), np.ones(10))
    problem = HeldOutProblem(test, [5, 6, 7])
    assert problem.num_clients == 3
    measured = problem.evaluate(np.zeros(11))
    assert measured["objective"] == test.evaluate(np.zeros(11))["objective"]
    assert "first_client_loss" not in measured
    assert problem.fingerprint() != HeldOutProblem(test, [5, 6, 8]).fingerprint()
    assert np.array_equal(problem.init(0), np.zeros(11))
    assert problem.optimum() is None


@pytest.mark.parametrize(
    "compute",
    [
        lambda problem: problem.local_train(np.zeros(11), 0, Work(), 0),
        lambda problem: problem.local_train_many(Jobs(np.zeros((1, 11)), [0], [Work()], [0])),
        lambda problem: problem.local_path_moments(Jobs(np.zeros((1, 11)), [0], [Work()], [0])),
        lambda problem: problem.client_loss(np.zeros(11), 0),
        lambda problem: problem.client_losses(np.zeros(11)),
        lambda problem: problem.gradient(np.zeros(11), 0),
    ],
)
def test_what_needs_the_clients_data_is_refused(experiment, compute):
    with pytest.raises(ProtocolError, match="the clients' data are not on the server"):
        compute(HeldOutProblem(build_problem(experiment, np.eye(10), np.ones(10)), [5, 6, 7]))
