"""A vector added to the gradient of every step: the compiled loop against its readable twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import DataError
from asyncfed.kernels import reference
from asyncfed.kernels.losses import HINGE, LEAST_SQUARES, LOGISTIC, LOSS_CODES, MSE
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.tasks import Tasks
from asyncfed.kernels.threads import SMALL

KEY = 0x0123_4567_89AB_CDEF


def one_task(key=KEY, epochs=1, batch=32, lr=0.1, decay=0.0, prox=0.0):
    return Tasks(np.array([0]), np.array([key], dtype=np.uint64), np.array([[epochs, batch, lr, decay, prox]], float))


def client(seed, rows, d, fit_bias=True):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, d)), rng.choice([-1.0, 1.0], rows), *rng.normal(size=(2, d + fit_bias))


def kernel(x, y, loss_code=LOGISTIC, l2=0.0, penalize_bias=True, fit_bias=True):
    return LocalSgd(x, y, np.array([0, len(y)]), loss_code, l2, penalize_bias, fit_bias)


@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 41),
    d=st.integers(1, 13),
    model=st.fixed_dictionaries(
        {"l2": st.sampled_from([0.0, 0.2]), "penalize_bias": st.booleans(), "fit_bias": st.booleans()}
    ),
    how=st.fixed_dictionaries(
        {
            "key": st.integers(0, 2**64 - 1),
            "epochs": st.integers(1, 3),
            "batch": st.integers(1, 50),
            "lr": st.floats(1e-3, 0.05),
            "decay": st.sampled_from([0.0, 0.5]),
            "prox": st.sampled_from([0.0, 0.3]),
        }
    ),
)
@settings(max_examples=20, deadline=None)
def test_equals_the_twin(loss_code, seed, rows, d, model, how):
    x, y, start, correction = client(seed, rows, d, model["fit_bias"])
    sgd = kernel(x, y, loss_code, **model)
    slow = reference.train_one(x, y, start, correction=correction, loss_code=loss_code, **model, **how)
    fast = sgd.train(start[None], one_task(**how), corrections=correction[None])[0]
    assert fast.tobytes() == slow.tobytes()
    steps, sums, squares = sgd.path_moments(start[None], one_task(**how), corrections=correction[None])
    moments = reference.path_moments(x, y, start, correction=correction, loss_code=loss_code, **model, **how)
    assert steps[0] == moments[0]
    np.testing.assert_allclose(sums[0], moments[1], rtol=1e-10, atol=1e-10)
    assert squares[0] == pytest.approx(moments[2], rel=1e-10, abs=1e-12)


eighths = st.integers(-8, 8).map(lambda n: n / 8)


@pytest.mark.parametrize("loss_code", [LEAST_SQUARES, MSE, HINGE])
@given(
    data=st.data(),
    rows=st.sampled_from([1, 2, 4, 8]),
    d=st.integers(1, 3),
    key=st.integers(0, 2**64 - 1),
    batch=st.sampled_from([1, 2, 4, 8]),
    l2=st.sampled_from([0.0, 0.5]),
    prox=st.sampled_from([0.0, 0.25]),
)
@settings(max_examples=40, deadline=None)
def test_equals_the_twin_to_the_last_bit_where_no_sum_is_rounded(loss_code, data, rows, d, key, batch, l2, prox):
    # Short binary fractions: three steps of them are exact in double precision, in whatever order they are added.
    def draw(count):
        return np.array(data.draw(st.lists(eighths, min_size=count, max_size=count)))

    x, start, correction = draw(rows * d).reshape(rows, d), draw(d + 1), draw(d + 1)
    y = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=rows, max_size=rows)))
    work = np.array([[1, batch, 0.5, 0.0, prox, 0, 3]], float)
    tasks = Tasks(np.array([0]), np.array([key], np.uint64), work)
    fast = kernel(x, y, loss_code, l2).train(start[None], tasks, corrections=correction[None])[0]
    how = {"batch": batch, "lr": 0.5, "prox": prox, "steps": 3, "loss_code": loss_code, "l2": l2}
    slow = reference.train_one(x, y, start, key, correction=correction, **how)
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_none_and_zeros_train_alike(l2):
    x, y, start, _ = client(3, 30, 4)
    sgd, task = kernel(x, y, l2=l2), one_task(epochs=5, batch=7)
    none = sgd.train(start[None], task)
    assert none.tobytes() == sgd.train(start[None], task, corrections=np.zeros((1, 5))).tobytes()


def test_one_step_by_hand():
    # (z, y) = (2, 3) from (0, 0): the gradient is (−6, −3); with the correction (1, −1), a step of ½ goes to (2.5, 2).
    sgd = kernel(np.array([[2.0]]), np.array([3.0]), LEAST_SQUARES)
    trained = sgd.train(np.zeros((1, 2)), one_task(lr=0.5), corrections=np.array([[1.0, -1.0]]))
    assert trained.tolist() == [[2.5, 2.0]]


def many_tasks(dtype, tasks=40):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 400, 12)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    x, y = rng.normal(size=(offsets[-1], 7)).astype(dtype), rng.choice([-1, 1], offsets[-1]).astype(dtype)
    clients, epochs = rng.integers(0, 12, tasks), rng.integers(40, 120, tasks)
    assert (epochs * sizes[clients]).sum() * 14 > SMALL, "too little work to start threads"
    keys, batch = rng.integers(0, 2**63, tasks).astype(np.uint64), rng.integers(1, 64, tasks)
    rates = (rng.uniform(0.01, 0.1, tasks), rng.uniform(0, 1, tasks), rng.uniform(0, 1, tasks))
    sgd = LocalSgd(x, y, offsets, LOGISTIC, 0.01, True, True)
    work = np.column_stack([epochs, batch, *rates]).astype(np.float64)
    start, corrections = rng.normal(size=(2, tasks, 8)).astype(dtype)
    return sgd, start, corrections, Tasks(clients, keys, work)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_alone_together_and_on_threads_to_the_last_bit(dtype):
    sgd, start, corrections, tasks = many_tasks(dtype)
    kept = corrections.copy()
    together = sgd.train(start, tasks, corrections=corrections)
    assert np.isfinite(together).all()
    for threads in (2, 5):
        assert sgd.train(start, tasks, threads, corrections=corrections).tobytes() == together.tobytes()
    for k in (0, 17, 39):
        one = Tasks(*(column[k : k + 1] for column in tasks))
        alone = sgd.train(start[k : k + 1], one, corrections=corrections[k : k + 1])
        assert alone.tobytes() == together[k].tobytes()
    assert np.array_equal(corrections, kept)


def test_a_wrong_shape_is_refused():
    x, y, start, _ = client(1, 10, 3)
    with pytest.raises(DataError, match=r"corrections has shape \(1, 3\); 1 tasks need \(1, 4\)"):
        kernel(x, y).train(start[None], one_task(), corrections=np.zeros((1, 3)))
