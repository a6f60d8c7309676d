"""The SGD on sparse rows against its readable twin, bit by bit, and against the dense kernel up to rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels import reference, sparse_reference
from asyncfed.kernels.losses import HUBER_HINGE, LEAST_SQUARES, LOGISTIC, LOSS_CODES
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.sparse_sgd import SparseSgd
from asyncfed.kernels.tasks import Tasks
from asyncfed.kernels.threads import SMALL

KEY = 0xFEDC_BA98_7654_3210


def random_rows(seed, rows, d, density=0.3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, d)) * (rng.random((rows, d)) < density)
    y, start = rng.choice([-1.0, 1.0], rows), rng.normal(size=d + 1)
    return sparse.csr_array(x.astype(dtype)), y.astype(dtype), start.astype(dtype)


def one_task(key=KEY, *, epochs=1, batch=32, lr=0.1, decay=0.0, prox=0.0, patience=0, steps=0):
    work = np.array([[epochs, batch, lr, decay, prox, patience, steps]], np.float64)
    return Tasks(np.array([0]), np.array([key], np.uint64), work)


def kernel(kind, x, y, loss_code, l2=0.0, penalize_bias=True, fit_bias=True, hinge_width=1.0):
    return kind(x, y, np.array([0, len(y)]), loss_code, l2, penalize_bias, fit_bias, hinge_width)


MODEL = ("loss_code", "l2", "penalize_bias", "fit_bias", "hinge_width")


def train(kind, x, y, start, key=KEY, correction=None, **options):
    model = {name: options.pop(name) for name in MODEL if name in options}
    shifts = None if correction is None else correction[None]
    return kernel(kind, x, y, **model).train(start[None], one_task(key, **options), corrections=shifts)[0]


PROBLEMS = {
    "seed": st.integers(0, 10_000),
    "rows": st.integers(1, 30),
    "d": st.integers(1, 40),
    "density": st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    "key": st.integers(0, 2**64 - 1),
    "epochs": st.integers(1, 3),
    "batch": st.integers(1, 35),
    "lr": st.sampled_from([0.003, 0.05]),
    "decay": st.sampled_from([0.0, 0.5]),
    "prox": st.sampled_from([0.0, 0.3]),
    "l2": st.sampled_from([0.0, 0.2]),
    "patience": st.sampled_from([0, 1]),
    "steps": st.sampled_from([0, 0, 5]),
    "penalize_bias": st.booleans(),
    "fit_bias": st.booleans(),
    "corrected": st.booleans(),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
@given(**PROBLEMS)
@settings(max_examples=25, deadline=None)
def test_has_the_bits_of_the_twin(loss_code, dtype, seed, rows, d, density, key, fit_bias, corrected, **options):
    x, y, start = random_rows(seed, rows, d, density, dtype)
    start = start[: d + fit_bias]
    correction = np.linspace(-0.2, 0.3, len(start)).astype(dtype) if corrected else None
    options |= {"loss_code": loss_code, "fit_bias": fit_bias, "hinge_width": 0.7, "correction": correction}
    fast = train(SparseSgd, x, y, start, key, **options)
    slow = sparse_reference.train_path(x, y, start, key, **options)[-1]
    assert fast.dtype == slow.dtype == dtype
    assert fast.tobytes() == slow.tobytes()


@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
@given(**PROBLEMS)
@settings(max_examples=25, deadline=None)
def test_trains_to_what_the_dense_kernel_does_up_to_rounding(
    loss_code, seed, rows, d, density, key, fit_bias, corrected, **options
):
    x, y, start = random_rows(seed, rows, d, density)
    start = start[: d + fit_bias]
    correction = np.linspace(-0.2, 0.3, len(start)) if corrected else None
    options |= {"loss_code": loss_code, "fit_bias": fit_bias, "hinge_width": 0.7, "correction": correction}
    options["patience"] = 0  # an epoch's loss may be lower by a rounding
    one, other = (train(kind, rows, y, start, key, **options) for kind, rows in both_kinds(x))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def both_kinds(x):
    return (SparseSgd, x), (LocalSgd, x.toarray())


@pytest.mark.parametrize("pull", [0.02, 0.5, 1.0, 1.7, 2.0, 2.5])
def test_weights_are_written_out_when_their_scale_becomes_small_or_large_or_zero(pull):
    # Each step multiplies the scale by 1 − lr · (l2 + prox) = 1 − pull: 0 for 1, negative above it, growing above 2.
    x, y, start = random_rows(5, 24, 9)
    options = {"epochs": 20, "batch": 4, "lr": 0.1, "l2": 6 * pull, "prox": 4 * pull, "loss_code": LOGISTIC}
    one = train(SparseSgd, x, y, start, **options)
    twin = sparse_reference.train_path(x, y, start, KEY, **options)[-1]
    assert one.tobytes() == twin.tobytes()
    dense = train(LocalSgd, x.toarray(), y, start, **options)
    np.testing.assert_allclose(one, dense, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(dense).max()))


def test_thousands_of_lazy_steps_stay_within_rounding():
    x, y, start = random_rows(3, 60, 200, 0.05)
    options = {"epochs": 200, "batch": 3, "lr": 0.02, "l2": 0.5, "prox": 0.3, "loss_code": LOGISTIC}
    options["correction"] = np.linspace(-0.1, 0.1, 201)
    one, other = (train(kind, rows, y, start, **options) for kind, rows in both_kinds(x))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_a_step_by_hand():
    # w = (1, 2, 4), b = 0, rows (1, 0, 0) and (0, 3, 0) with y = 0: slopes 1 and 6, lr ½, l2 1, prox 0, in one batch.
    # Gradient (½, 9, 0; 3½), and w itself: w ← (1 − ½ (½ + 1), 2 − ½ (9 + 2), 4 − ½ · 4), b ← −½ · 3½.
    x, y = sparse.csr_array(np.array([[1.0, 0.0, 0.0], [0.0, 3.0, 0.0]])), np.zeros(2)
    end = train(SparseSgd, x, y, np.array([1.0, 2.0, 4.0, 0.0]), lr=0.5, l2=1.0, loss_code=LEAST_SQUARES)
    assert end.tolist() == [0.25, -3.5, 2.0, -1.75]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_path_moments_are_those_of_the_twin_and_training_is_not_changed_by_them(dtype):
    x, y, start = random_rows(8, 20, 12, 0.2, dtype)
    options = {"epochs": 2, "batch": 6, "lr": 0.05, "prox": 0.2}
    model = kernel(SparseSgd, x, y, LEAST_SQUARES, 0.1)
    steps, sums, squares = model.path_moments(start[None], one_task(**options))
    path = sparse_reference.train_path(x, y, start, KEY, loss_code=LEAST_SQUARES, l2=0.1, **options)
    gaps = np.array(path[:-1], np.float64) - path[0]
    assert steps.tolist() == [8.0]
    np.testing.assert_allclose(sums[0], gaps.sum(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(squares[0], (gaps**2).sum(), rtol=1e-12)


def test_many_trainings_are_those_one_by_one_on_any_number_of_threads():
    x, y, _ = random_rows(1, 4000, 50, 0.5)
    offsets = np.array([0, 700, 1500, 3990, 4000])
    model = SparseSgd(x, y, offsets, HUBER_HINGE, 0.1, False, True, 0.5)
    clients = np.array([2, 0, 3, 1, 2, 0])
    starts = np.random.default_rng(0).normal(size=(6, 51))
    keys, work = np.arange(6, dtype=np.uint64), np.tile([40.0, 32, 0.01, 0.5, 0.1], (6, 1))
    assert (np.diff(offsets)[clients] * 40 * 25 * 2).sum() > SMALL
    together = model.train(starts, Tasks(clients, keys, work), 1)
    for threads in (2, 3):
        assert model.train(starts, Tasks(clients, keys, work), threads).tobytes() == together.tobytes()
    for i in range(6):
        alone = model.train(starts[i : i + 1], Tasks(clients[i : i + 1], keys[i : i + 1], work[i : i + 1]))
        assert alone.tobytes() == together[i : i + 1].tobytes()


def test_steps_are_counted_and_patience_ends_a_training_early():
    x, y, start = random_rows(2, 20, 30)
    model, done = kernel(SparseSgd, x, y, LEAST_SQUARES), np.zeros(1, np.int64)
    model.train(start[None], one_task(batch=8, steps=7), steps_done=done)
    assert done.tolist() == [7]
    model.train(start[None], one_task(epochs=50, batch=8, lr=0.0, patience=2), steps_done=done)
    assert done.tolist() == [9]  # three epochs of three steps: the first sets the lowest loss


def test_rows_of_64_bit_columns_train_to_the_same_bits():
    x, y, start = random_rows(4, 20, 30)
    wide = sparse.csr_array((x.data, x.indices.astype(np.int64), x.indptr.astype(np.int64)), x.shape)
    assert wide.indices.dtype == np.int64
    one, other = (train(SparseSgd, rows, y, start, loss_code=LEAST_SQUARES) for rows in (x, wide))
    assert one.tobytes() == other.tobytes()


def test_rows_that_no_kernel_can_read_are_refused():
    x, y, _ = random_rows(4, 6, 5)
    with pytest.raises(DataError, match="needs a SciPy CSR array"):
        kernel(SparseSgd, x.tocsc(), y, LEAST_SQUARES)
    with pytest.raises(DataError, match="needs x's dtype"):
        kernel(SparseSgd, x, y.astype(np.float32), LEAST_SQUARES)
    twice = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    with pytest.raises(DataError, match="sum_duplicates"):
        kernel(SparseSgd, twice, np.ones(1), LEAST_SQUARES)
    beyond = x.copy()
    beyond.indices[-1] = 5
    with pytest.raises(DataError, match="of 5"):
        kernel(SparseSgd, beyond, y, LEAST_SQUARES)
    with pytest.raises(ConfigError, match="loss_code is 9"):
        kernel(SparseSgd, x, y, 9)


def test_the_twin_and_the_dense_twin_go_the_same_way():
    x, y, start = random_rows(6, 15, 8)
    options = {"epochs": 2, "batch": 4, "lr": 0.05, "prox": 0.3, "l2": 0.2, "loss_code": LOGISTIC, "steps": 6}
    lazy = sparse_reference.train_path(x, y, start, KEY, **options)
    plain = reference.train_path(x.toarray(), y, start, KEY, **options)
    np.testing.assert_allclose(lazy, plain, rtol=1e-12, atol=1e-12)
