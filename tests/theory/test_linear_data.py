"""The data the constants are computed from."""

import numpy as np
import pytest
from scipy import sparse

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.problems.linear import Linear
from asyncfed.theory.blocks import blocks
from asyncfed.theory.linear_data import LinearData


class Packed:
    def __init__(self, x, y, offsets):
        self.x, self.y, self.offsets = x, y, offsets

    def sha256(self):
        return "none"


def test_a_problem_hands_over_its_own_arrays_and_settings():
    packed = Packed(np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 1.0]), np.array([0, 2, 3]))
    problem = Linear(packed, "squared_hinge", l2=0.3, penalize_bias=False)
    data = LinearData.of_problem(problem)
    assert data.x is problem.x
    assert (data.loss, data.l2, data.penalize_bias, data.fit_bias) == ("squared_hinge", 0.3, False, True)
    assert data.penalty.tolist() == [0.3, 0.3, 0.0]
    assert data.sizes.tolist() == [2, 1]


X, Y = np.ones((3, 2)), np.array([1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "says"),
    [
        ((X, Y, [0, 3]), {"loss": "squard_hinge"}, ConfigError, 'Did you mean "squared_hinge"'),
        ((X, Y, [0, 3]), {"l2": -1.0}, ConfigError, "l2 is -1.0; it must be zero or a positive number"),
        ((X, Y, [0, 3]), {"hinge_width": 0.0}, ConfigError, "hinge_width is 0.0; it must be a positive number"),
        ((X, Y[:2], [0, 3]), {}, DataError, r"x has shape \(3, 2\) and y \(2,\)"),
        ((X, Y, [0, 2]), {}, DataError, "must run from 0 to the 3 rows"),
        ((X, Y, [0, 0, 3]), {}, DataError, "Client 0 has 0 rows"),
        ((X, 2 * Y, [0, 3]), {"loss": "logistic"}, DataError, "needs labels −1 and \\+1, but y holds 2.0"),
        ((X, 2 * Y, [0, 3]), {"loss": "huber_hinge"}, DataError, "needs labels −1 and \\+1, but y holds 2.0"),
        ((X * np.nan, Y, [0, 3]), {}, DataError, "not finite"),
        ((X[:, :0], Y, [0, 3]), {"fit_bias": False}, DataError, "nothing to learn"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments, settings, error, says):
    with pytest.raises(error, match=says):
        LinearData(*arguments, **settings)


def test_no_clients_and_points_of_a_wrong_length_are_refused():
    with pytest.raises(DataError, match="at least one pair"):
        LinearData.of_clients([])
    with pytest.raises(ConfigError, match=r"start has shape \(2,\).*2 features and a bias need 3 finite numbers"):
        LinearData(X, Y, [0, 3]).point([0.0, 0.0], "start")


@pytest.mark.parametrize("cells", [1, 12, 10_000])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, lambda x: np.asarray(x, np.float32)])
def test_blocks_cover_every_client_once_whatever_their_size(monkeypatch, cells, kind):
    monkeypatch.setattr("asyncfed.theory.blocks.CELLS_AT_ONCE", cells)
    rng = np.random.default_rng(3)
    sizes = [4, 1, 7, 2]
    x = rng.integers(-3, 4, size=(14, 2)).astype(float)
    data = LinearData(kind(x), rng.normal(size=14), np.cumsum([0, *sizes]))
    z, values, point = np.column_stack([x, np.ones(14)]), rng.normal(size=14), np.array([0.5, -1.0, 2.0])
    owners = np.repeat(np.arange(4), sizes)
    seen = []
    for block in blocks(data):
        seen += range(*block.clients.indices(4))
        rows = np.isin(owners, seen[-(len(block.starts) - 1) :])
        np.testing.assert_allclose(block.margins(point), z[rows] @ point, atol=1e-12)
        np.testing.assert_allclose(block.squared_norms(), (z[rows] ** 2).sum(axis=1))
        for client, summed in zip(seen[-(len(block.starts) - 1) :], block.weighted_rows(values[rows]), strict=True):
            np.testing.assert_allclose(summed, values[owners == client] @ z[owners == client], atol=1e-12)
    assert seen == [0, 1, 2, 3]
