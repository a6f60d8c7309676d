"""A ticket's local training as a map: exact for quadratics, bounded for other smooth losses."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.certificates import local_maps
from asyncfed.engine.trajectory import MergedTicket


def tickets_of(work, count=6):
    return [MergedTicket(t, t % 3, 0, work, key=100 + t, weight=1.0) for t in range(count)]


@pytest.fixture
def quadratic():
    return af.data.PaperRegression(num_samples=60, num_features=2), af.problems.LinearModel()


def problem_of(data, model):
    return af.Experiment(num_clients=3, data=data, model=model).problem()


def test_the_map_of_full_gradients_is_known_in_closed_form(quadratic):
    problem, rate = problem_of(*quadratic), 1e-3
    work = af.Work(epochs=5, batch_size=1000, learning_rate=rate)
    best = problem.optimum()
    found = local_maps.exact_maps(problem, tickets_of(work, 3), best, threads=1)
    for client, one in enumerate(found):
        rows = slice(problem.offsets[client], problem.offsets[client + 1])
        z = np.column_stack([problem.x[rows], np.ones(rows.stop - rows.start)])
        matrix = np.linalg.matrix_power(np.eye(3) - rate * z.T @ z / len(z), 5)
        assert one.contraction == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-9)
        assert one.lipschitz == pytest.approx(np.linalg.norm(np.eye(3) - matrix, 2), rel=1e-9)
        moved = problem.local_train(best, client, work, 100 + client)
        assert one.offset == pytest.approx(np.linalg.norm(moved - best), rel=1e-12)


def test_no_training_stretches_more_than_its_map(quadratic):
    problem, work = problem_of(*quadratic), af.Work(epochs=2, batch_size=7, learning_rate=1e-3)
    best, chance = problem.optimum(), np.random.default_rng(0)
    tickets = tickets_of(work)
    for ticket, one in zip(tickets, local_maps.exact_maps(problem, tickets, best, threads=1), strict=True):
        start = best + chance.normal(size=best.shape)
        end = problem.local_train(start, ticket.client, work, ticket.key)
        assert np.linalg.norm(end - best) <= one.contraction * np.linalg.norm(start - best) + one.offset + 1e-12


def test_groups_of_tickets_change_nothing(quadratic, monkeypatch):
    problem, work = problem_of(*quadratic), af.Work(epochs=1, batch_size=7, learning_rate=1e-3)
    whole = local_maps.exact_maps(problem, tickets_of(work), problem.optimum(), threads=1)
    monkeypatch.setattr(local_maps, "AT_ONCE", 8)
    assert local_maps.exact_maps(problem, tickets_of(work), problem.optimum(), threads=1) == whole


def test_bounds_on_the_maps_of_a_smooth_loss():
    data = af.data.PaperClassification(num_samples=60, num_features=2)
    problem = problem_of(data, af.problems.LinearModel(loss="logistic", l2=0.5))
    best, work = problem.optimum(), af.Work(epochs=2, batch_size=1000, learning_rate=0.01)
    (one,) = local_maps.bounded_maps(problem, tickets_of(work, 1), best, (4.0, 0.5), threads=1)
    assert one.contraction == pytest.approx((1 - 0.01 * 0.5) ** 2)
    assert one.lipschitz == pytest.approx(4.0 * (1 - one.contraction) / 0.5)
    (counted,) = local_maps.bounded_maps(
        problem, tickets_of(af.replace(work, epochs=9, steps=3), 1), best, (4.0, 0.5), threads=1
    )
    assert counted.contraction == pytest.approx((1 - 0.01 * 0.5) ** 3)
    steep = af.Work(epochs=2, batch_size=1000, learning_rate=0.5)
    assert local_maps.bounded_maps(problem, tickets_of(steep, 1), best, (4.0, 0.5), threads=1) is None
