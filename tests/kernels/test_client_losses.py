"""The compiled losses against their readable twin, and against themselves on more threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import DataError
from asyncfed.kernels import reference
from asyncfed.kernels.client_losses import client_losses
from asyncfed.kernels.losses import HINGE, LOGISTIC, LOSS_CODES, SQUARED_HINGE


def random_clients(seed, sizes, d, dtype=np.float64):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    x = rng.normal(size=(offsets[-1], d)).astype(dtype)
    return x, rng.choice([-1.0, 1.0], len(x)).astype(dtype), offsets, rng.normal(size=d + 1)


@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=6),
    d=st.integers(1, 9),
    fit_bias=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_equals_the_twin(loss_code, seed, sizes, d, fit_bias):
    x, y, offsets, params = random_clients(seed, sizes, d)
    params = params[: d + fit_bias]
    sums, correct = client_losses(x, y, offsets, params, loss_code)
    slow_sums, slow_correct = reference.client_losses(x, y, offsets, params, loss_code)
    np.testing.assert_allclose(sums, slow_sums, rtol=1e-12, atol=1e-13)
    assert correct.tolist() == slow_correct.tolist()


@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
def test_single_precision_rows_give_double_precision_sums(loss_code):
    x, y, offsets, params = random_clients(0, [500, 3], 6, np.float32)
    sums, _ = client_losses(x, y, offsets, params, loss_code)
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, reference.client_losses(x, y, offsets, params, loss_code)[0], rtol=1e-5)


def test_threads_change_no_bit():
    sizes = np.random.default_rng(1).integers(1, 9000, 40)
    x, y, offsets, params = random_clients(1, sizes, 8)
    serial = client_losses(x, y, offsets, params, LOGISTIC)
    for threads in (2, 3):
        parallel = client_losses(x, y, offsets, params, LOGISTIC, threads)
        assert [a.tobytes() for a in parallel] == [a.tobytes() for a in serial]


@pytest.mark.parametrize("loss_code", [LOGISTIC, HINGE, SQUARED_HINGE])
def test_a_diverged_model_has_no_loss_and_no_right_answers(loss_code):
    x, y, offsets, params = random_clients(2, [10], 2)
    sums, correct = client_losses(x, y, offsets, params * np.nan, loss_code)
    assert np.isnan(sums[0])
    assert correct.tolist() == [0]


def test_a_zero_margin_is_not_a_right_answer():
    x, y, offsets, params = random_clients(2, [10], 2)
    assert client_losses(x, y, offsets, params * 0, HINGE)[1].tolist() == [0]


def test_params_of_another_size_are_refused():
    x, y, offsets, params = random_clients(2, [10], 4)
    with pytest.raises(DataError, match=r"params have shape \(3,\); 4 features need that many numbers, or one more"):
        client_losses(x, y, offsets, params[:3], HINGE)
