import numpy as np
import pytest

from asyncfed.problems.conjugate_gradient import conjugate_gradient


def system(size=6, rank=6):
    factor = np.random.default_rng(0).normal(size=(rank, size))
    return factor.T @ factor, np.random.default_rng(1).normal(size=size)


def test_it_solves_what_a_direct_solver_solves():
    matrix, target = system()
    found = conjugate_gradient(lambda v: matrix @ v, target, 1e-12, 100)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, target), rtol=1e-6)


def test_of_several_solutions_it_finds_the_shortest():
    matrix, _ = system(rank=3)
    target = matrix @ np.ones(6)
    found = conjugate_gradient(lambda v: matrix @ v, target, 1e-12, 100)
    np.testing.assert_allclose(found, np.linalg.pinv(matrix) @ target, rtol=1e-6)


def test_it_ends_after_so_many_products_with_the_best_so_far():
    matrix, target = system()
    calls = []

    def product(vector):
        calls.append(1)
        return matrix @ vector

    rough = conjugate_gradient(product, target, 1e-12, 2)
    assert len(calls) == 2
    exact = np.linalg.solve(matrix, target)
    energy = [0.5 * v @ matrix @ v - target @ v for v in (np.zeros(6), rough, exact)]
    assert energy[0] > energy[1] > energy[2]


@pytest.mark.parametrize("target", [np.zeros(3), np.ones(3)])
def test_without_curvature_it_stays_where_it_is(target):
    assert conjugate_gradient(lambda v: np.zeros(3), target, 1e-12, 10).tolist() == [0.0] * 3
