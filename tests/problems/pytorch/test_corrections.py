"""A vector added to the gradient of every step of a module: what it moves, and what it must not."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, DataError
from asyncfed.problems.protocol import Jobs

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn


def perceptron():
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).double()


def normalised():
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)).double()


def half_frozen():
    module = perceptron()
    module[0].requires_grad_(False)
    return module


def problem_of(make, together=True, count=3):
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(n, 4)), rng.integers(0, 2, n)) for n in (12, 7, 20)[:count]]
    return af.problems.torch_problem(make, "cross_entropy", rows, together=together)


def train(problem, work, correction=None):
    done = np.zeros(1, np.int64)
    corrections = None if correction is None else correction[None]
    jobs = Jobs(problem.init(0)[None], [1], [work], [9], corrections=corrections, steps_done=done)
    return problem.local_train_many(jobs)[0], int(done[0])


@pytest.mark.slow
@pytest.mark.parametrize("together", [True, False])
def test_against_the_optimiser_of_torch(together):
    """SGD whose gradients have the correction added before each step, over rows in the order of the kernel."""
    from asyncfed.kernels.row_orders import epoch_orders

    problem = problem_of(perceptron, together)
    correction = np.random.default_rng(1).normal(size=problem.num_params)
    x, y = (torch.tensor(part[12:19]) for part in (problem.clients.x, problem.clients.y))
    module = problem.module(problem.init(0)).train()
    parameters = list(module.parameters())
    parts = torch.tensor(correction).split([p.numel() for p in parameters])
    optimiser, made = torch.optim.SGD(parameters, lr=0.1), 0
    for epoch, order in enumerate(epoch_orders(9, 7, 3)):
        optimiser.param_groups[0]["lr"] = 0.1 / (epoch + 1) ** 0.5
        for chosen in torch.tensor(order).split(3):
            if made < 8:
                optimiser.zero_grad()
                nn.functional.cross_entropy(module(x[chosen]), y[chosen]).backward()
                for parameter, part in zip(parameters, parts, strict=True):
                    parameter.grad += part.view(parameter.shape)
                optimiser.step()
                made += 1
    by_torch = torch.cat([p.detach().reshape(-1) for p in parameters]).numpy()
    work = af.Work(steps=8, batch_size=3, learning_rate=0.1, decay=0.5)
    trained, done = train(problem, work, correction)
    np.testing.assert_allclose(trained, by_torch, atol=1e-12)
    assert done == made == 8


@pytest.mark.parametrize("together", [True, False])
def test_zeros_change_nothing(together):
    problem, work = problem_of(perceptron, together), af.Work(epochs=3, batch_size=4, proximal=0.1)
    assert problem.together == together
    assert np.array_equal(train(problem, work)[0], train(problem, work, np.zeros(problem.num_params))[0])


def test_buffers_and_frozen_parameters_are_not_corrected():
    """Batch norm's statistics have no gradient, so their part of the vector is left out; frozen is frozen."""
    work, stays = af.Work(steps=4, batch_size=4, learning_rate=0.1), half_frozen()[0]
    frozen = sum(p.numel() for p in stays.parameters())
    problem = problem_of(half_frozen)
    trained, _ = train(problem, work, np.ones(problem.num_params))
    assert np.array_equal(trained[:frozen], problem.init(0)[:frozen])
    assert (trained[frozen:] != train(problem, work)[0][frozen:]).all()
    problem = problem_of(normalised)
    parameters = sum(p.numel() for p in normalised().parameters())
    only_buffers = np.where(np.arange(problem.num_params) < parameters, 0.0, 1.0)
    assert np.array_equal(train(problem, work, only_buffers)[0], train(problem, work)[0])


def test_the_room_for_corrections_is_shared_with_velocities_and_neither_sees_the_other():
    problem, fresh = problem_of(perceptron), problem_of(perceptron)
    heavy, plain = af.Work(epochs=2, momentum=0.9), af.Work(epochs=2)
    correction = np.full(problem.num_params, 0.3)
    first = train(problem, plain, correction)[0]
    assert np.array_equal(train(problem, heavy)[0], train(fresh, heavy)[0])
    assert np.array_equal(train(problem, plain, correction)[0], first)
    assert np.array_equal(train(problem, plain)[0], train(fresh, plain)[0])


@pytest.mark.parametrize("together", [True, False])
def test_with_momentum_it_is_refused(together):
    problem = problem_of(perceptron, together)
    with pytest.raises(ConfigError, match=r"work\.momentum is 0\.9, but a vector .* exact for plain SGD only"):
        train(problem, af.Work(momentum=0.9), np.zeros(problem.num_params))


def test_wrong_shapes_are_refused():
    problem = problem_of(perceptron)
    jobs = Jobs(problem.init(0)[None], [0], [af.Work()], [1])
    with pytest.raises(DataError, match=r"corrections has shape \(1, 2\); 1 jobs need \(1, 23\)"):
        problem.local_train_many(jobs._replace(corrections=np.zeros((1, 2))))
    with pytest.raises(DataError, match=r"steps_done has shape \(3,\); 1 jobs need \(1,\)"):
        problem.local_train_many(jobs._replace(steps_done=np.zeros(3, np.int64)))
