"""Other relations between features and target: only of shifted clients, and as strong as said."""

import numpy as np
import pytest

from asyncfed.data import Table
from asyncfed.data.concept_shift import flip_labels, shift_response

OWNERS = np.repeat([0, 1, 2], 2000)
SHIFTED = np.array([False, True, False])


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(5.0, 3.0, (6000, 4))
    return Table.from_arrays(x, x @ [1.0, -2.0, 0.5, 0.0], labels=False)


@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_targets_of_shifted_clients_change_by_the_strength(table, strength):
    y = shift_response(table, OWNERS, SHIFTED, strength, np.random.default_rng(1))
    change = y - table.y
    assert not change[OWNERS != 1].any()
    assert change[OWNERS == 1].std() == pytest.approx(strength * table.y.std(), rel=0.1)
    assert change[OWNERS == 1].mean() == pytest.approx(0.0, abs=0.1 * strength * table.y.std())


def test_two_shifted_clients_have_directions_of_their_own(table):
    y = shift_response(table, OWNERS, np.array([True, True, False]), 1.0, np.random.default_rng(1))
    fits = [np.linalg.lstsq(table.x[c == OWNERS] - 5.0, (y - table.y)[c == OWNERS], rcond=None)[0] for c in (0, 1)]
    assert not np.allclose(fits[0], fits[1], atol=0.05)


def test_labels_of_shifted_clients_are_flipped_with_the_probability():
    labels = Table.from_arrays(np.ones((6000, 1)), np.tile([-1, 1], 3000), labels=True)
    flipped = flip_labels(labels, OWNERS, SHIFTED, 0.25, np.random.default_rng(2)) != labels.y
    assert not flipped[OWNERS != 1].any()
    assert flipped[OWNERS == 1].mean() == pytest.approx(0.25, abs=0.03)
    assert (
        flip_labels(labels, OWNERS, SHIFTED, 1.0, np.random.default_rng(2))[OWNERS == 1] == -labels.y[OWNERS == 1]
    ).all()
