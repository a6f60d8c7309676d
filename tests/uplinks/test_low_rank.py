"""Low-rank messages: exact for matrices of that rank, near the best otherwise."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.kernels import codec_reference as reference
from asyncfed.kernels import low_rank as compiled
from asyncfed.uplinks import LowRank


def through(codec, change, key=0):
    return codec.decode(codec.encode({}, change, key)[0], change.size, change.dtype)


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (4, 4)])
def test_the_loops_equal_their_twin(shape, iterations):
    chance = np.random.default_rng(0)
    matrix, start = chance.normal(size=shape), chance.normal(size=(shape[1], 3))
    matrix[:, 0] = 0.0
    left, right = compiled.low_rank_factors(matrix, start, iterations)
    expected = reference.low_rank_factors(matrix, start, iterations, compiled.DEPENDENT)
    assert left.T.tolist() == expected[0]
    assert right.T.tolist() == expected[1]


def test_a_matrix_of_that_rank_comes_back_and_vectors_are_whole():
    chance = np.random.default_rng(1)
    matrix = chance.normal(size=(9, 2)) @ chance.normal(size=(2, 8))
    change = np.concatenate([matrix.ravel(), [1.0, -0.0, 3.0]])
    codec = LowRank(rank=2, shapes=((9, 2, 4), (3,)))
    seen = through(codec, change)
    assert seen == pytest.approx(change, abs=1e-12)
    assert seen[-3:].tobytes() == change[-3:].tobytes()
    assert codec.size(75, 4) == (2 * 17 + 3) * 4


def test_more_iterations_come_near_the_best_of_its_rank():
    chance = np.random.default_rng(2)
    left, right = (np.linalg.qr(chance.normal(size=(20, 20)))[0] for _ in range(2))
    values = 0.5 ** np.arange(20)
    change = ((left * values) @ right).ravel()
    best = float((values[3:] ** 2).sum())
    medians = []
    for iterations in (1, 2, 3):
        codec = LowRank(rank=3, iterations=iterations, shapes=((20, 20),))
        errors = [float(((through(codec, change, key) - change) ** 2).sum()) for key in range(50)]
        assert best * (1 - 1e-9) <= min(errors)
        medians.append(float(np.median(errors)))
    assert medians[0] > medians[1] > medians[2]
    assert medians[2] <= 1.1 * best


def test_the_constant_is_attained_by_equal_singular_values():
    codec = LowRank(rank=2, shapes=((6, 9),))
    change = np.eye(6, 9).ravel()
    errors = [float(((through(codec, change, key) - change) ** 2).sum()) / 6 for key in range(20)]
    assert errors == pytest.approx([1 - codec.contraction(54)] * 20)


@pytest.mark.parametrize("size", [1e-310, 1e-170, 1e200, 1e306])
def test_very_small_and_very_large_numbers(size):
    change = size * np.outer(np.arange(1.0, 6.0), np.arange(1.0, 7.0)).ravel()
    assert through(LowRank(rank=1, shapes=((5, 6),)), change) == pytest.approx(change, rel=1e-9, abs=1e-318)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_seen(bad):
    change = np.ones(30)
    change[7] = bad
    assert not np.isfinite(through(LowRank(rank=1, shapes=((5, 6),)), change)).all()


def test_other_shapes_than_the_models_are_refused():
    with pytest.raises(ConfigError, match=r"uplink.shapes hold 6 numbers, and the model has 7"):
        LowRank(shapes=((2, 3),)).size(7, 8)


@pytest.mark.parametrize("settings", [{"rank": 0}, {"iterations": 0}, {"shapes": ((-1, 2),)}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ConfigError, match=r"uplink\."):
        LowRank(**settings)
