"""Clients' losses on sparse rows against those on the same rows stored densely."""

import numpy as np
import pytest
from scipy import sparse

from asyncfed.core.errors import DataError
from asyncfed.kernels import reference
from asyncfed.kernels.losses import LOGISTIC, LOSS_CODES
from asyncfed.kernels.sparse_losses import sparse_client_losses


def rows(dtype=np.float64, n=700, d=40):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.2)
    return sparse.csr_array(x.astype(dtype)), rng.choice([-1.0, 1.0], n).astype(dtype), rng.normal(size=d + 1)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
def test_losses_are_those_of_the_twin_on_dense_rows(loss_code, dtype, bias):
    x, y, params = rows(dtype)
    offsets = np.array([0, 1, 300, 300, 700])
    params = params[: x.shape[1] + bias].astype(dtype)
    sums, correct = sparse_client_losses(x, y, offsets, params, loss_code, 1, 0.7)
    expected, right = reference.client_losses(x.toarray(), y, offsets, params, loss_code, 0.7)
    np.testing.assert_allclose(sums, expected, rtol=1e-12 if dtype == np.float64 else 1e-4)
    assert correct.tolist() == right.tolist()


def test_losses_do_not_depend_on_threads():
    x, y, params = rows(n=40_000, d=400)
    offsets = np.arange(0, 40_001, 1000)
    one, other = (sparse_client_losses(x, y, offsets, params, LOGISTIC, threads) for threads in (1, 3))
    assert x.nnz > 2_500_000
    assert [part.tobytes() for part in one] == [part.tobytes() for part in other]


def test_params_of_another_length_are_refused():
    x, y, params = rows()
    with pytest.raises(DataError, match="40 features need that many numbers, or one more"):
        sparse_client_losses(x, y, np.array([0, 700]), params[:30], LOGISTIC)
