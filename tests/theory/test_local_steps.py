"""Clients with the same rows may make many local steps, clients with features of their own few."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.local_steps import FACTOR, local_steps
from asyncfed.theory.step_size import step_size


def clients_of(*rows):
    return LinearData.of_clients([(x, np.zeros(len(x))) for x in rows])


def test_the_same_rows_allow_the_most_steps():
    x = np.random.default_rng(0).normal(size=(50, 3))
    assert local_steps(clients_of(x, x, x), 0.1, 1.0) == 32


def test_features_of_ones_own_allow_few():
    eye = np.eye(4)
    data = clients_of(*[np.tile(4 * row, (10, 1)) for row in eye])
    assert local_steps(data, step_size(data, 256, 1.0), 1.0) == 4


@pytest.mark.parametrize("fit_bias", [True, False])
def test_it_is_the_formula(fit_bias):
    rng = np.random.default_rng(1)
    xs = [rng.normal(size=(40, 3)) * scale for scale in (0.7, 1.0, 1.3)]
    wide = [np.column_stack([x, np.ones(40)]) if fit_bias else x for x in xs]
    hessians = [0.25 * z.T @ z / 40 for z in wide]
    spread = np.mean([np.linalg.norm(h - np.mean(hessians, axis=0), 2) for h in hessians])
    rate = FACTOR / spread / 9.5
    assert local_steps(clients_of(*xs), rate, 0.25, fit_bias) == 9


def test_wide_data_and_many_clients_are_not_looked_at_whole():
    rng = np.random.default_rng(2)
    assert local_steps(clients_of(rng.normal(size=(5, 600))), 0.1, 1.0) == 8
    many = clients_of(*[rng.normal(size=(3, 2)) for _ in range(500)])
    assert 4 <= local_steps(many, 0.1, 1.0) <= 32


def test_sparse_rows_allow_as_many_steps_as_the_same_rows_in_an_array():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 8)) * (rng.random((60, 8)) < 0.4)
    offsets = np.array([0, 15, 40, 60])
    packed, whole = (SimpleNamespace(x=rows, offsets=offsets) for rows in (sparse.csr_array(x), x))
    assert local_steps(packed, 0.1, 1.0) == local_steps(whole, 0.1, 1.0)
