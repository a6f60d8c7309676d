"""How far local training wanders: the compiled sums against their readable twin, and against the path's every point."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.kernels import reference
from asyncfed.kernels.losses import HINGE, LEAST_SQUARES, LOGISTIC, LOSS_CODES
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.tasks import Tasks
from asyncfed.kernels.threads import SMALL

KEY = 0xFEDC_BA98_7654_3210


def one_task(key=KEY, epochs=1, batch=32, lr=0.1, decay=0.0, prox=0.0):
    return Tasks(np.array([0]), np.array([key], dtype=np.uint64), np.array([[epochs, batch, lr, decay, prox]], float))


def moments_of_one(x, y, start, key=KEY, *, loss_code=LEAST_SQUARES, l2=0.0, penalize_bias=True, fit_bias=True, **work):
    sgd = LocalSgd(x, y, np.array([0, len(y)]), loss_code, l2, penalize_bias, fit_bias)
    steps, sums, squares = sgd.path_moments(np.asarray(start)[None], one_task(key, **work))
    return steps[0], sums[0], squares[0]


def random_problem(seed, rows, d, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(rows, d)).astype(dtype),
        rng.choice([-1.0, 1.0], rows).astype(dtype),
        rng.normal(size=d + 1).astype(dtype),
    )


PROBLEMS = {
    "seed": st.integers(0, 10_000),
    "rows": st.integers(1, 41),
    "d": st.integers(1, 13),
    "key": st.integers(0, 2**64 - 1),
    "epochs": st.integers(1, 3),
    "batch": st.integers(1, 50),
    "lr": st.floats(1e-3, 0.05),
    "decay": st.sampled_from([0.0, 0.5]),
    "prox": st.sampled_from([0.0, 0.3]),
    "l2": st.sampled_from([0.0, 0.2]),
    "penalize_bias": st.booleans(),
    "fit_bias": st.booleans(),
}


@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
@given(**PROBLEMS)
@settings(max_examples=20, deadline=None)
def test_equals_the_twin_in_double_precision(loss_code, seed, rows, d, key, fit_bias, **options):
    x, y, start = random_problem(seed, rows, d)
    start = start[: d + fit_bias]
    fast = moments_of_one(x, y, start, key, loss_code=loss_code, fit_bias=fit_bias, **options)
    slow = reference.path_moments(x, y, start, key, loss_code=loss_code, fit_bias=fit_bias, **options)
    assert fast[0] == slow[0]
    np.testing.assert_allclose(fast[1], slow[1], rtol=1e-10, atol=1e-10)
    assert fast[2] == pytest.approx(slow[2], rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("loss_code", sorted(set(LOSS_CODES.values()) - {HINGE}))
def test_single_precision_paths_are_summed_in_double_precision(loss_code):
    x, y, start = random_problem(4, 60, 5, np.float32)
    options = {"epochs": 3, "batch": 7, "lr": 0.02, "loss_code": loss_code, "l2": 0.1}
    steps, sums, squares = moments_of_one(x, y, start, **options)
    slow = reference.path_moments(x, y, start, KEY, **options)
    assert (sums.dtype, squares.dtype, steps) == (np.float64, np.float64, 27.0)
    np.testing.assert_allclose(sums, slow[1], rtol=1e-4, atol=1e-5)
    assert squares == pytest.approx(slow[2], rel=1e-4)


def test_two_steps_by_hand():
    # Both rows are (z, y) = (2, 3), in batches of one, from (0, 0) at rate ½: the points are (0, 0), (3, 1.5) and the
    # end (−1.5, −0.75), from which no step is made. Sum (3, 1.5), squares 9 + 2.25.
    x, y = np.full((2, 1), 2.0), np.full(2, 3.0)
    steps, sums, squares = moments_of_one(x, y, np.zeros(2), batch=1, lr=0.5)
    assert (steps, sums.tolist(), squares) == (2.0, [3.0, 1.5], 11.25)


@pytest.mark.parametrize(
    ("rows", "epochs", "batch", "steps"), [(10, 3, 4, 9), (10, 3, 10, 3), (10, 3, 99, 3), (0, 3, 4, 0), (10, 0, 4, 0)]
)
def test_steps_are_epochs_times_batches(rows, epochs, batch, steps):
    x, y, start = random_problem(0, rows, 2)
    counted, sums, squares = moments_of_one(x, y, start, epochs=epochs, batch=batch)
    assert counted == steps
    assert (steps > 1) == bool(squares > 0) == bool(np.any(sums != 0))


def many_tasks(dtype=np.float64, tasks=40):
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
    return sgd, rng.normal(size=(tasks, 8)).astype(dtype), Tasks(clients, keys, work)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit(dtype):
    sgd, start, tasks = many_tasks(dtype)
    serial = [part.tobytes() for part in sgd.path_moments(start, tasks)]
    for threads in (2, 5):
        assert [part.tobytes() for part in sgd.path_moments(start, tasks, threads)] == serial


def test_each_task_is_as_if_alone_and_the_start_is_left_alone():
    sgd, start, tasks = many_tasks()
    before = start.copy()
    together = sgd.path_moments(start, tasks)
    for k in (0, 17, 39):
        alone = sgd.path_moments(start[k : k + 1], Tasks(*(column[k : k + 1] for column in tasks)))
        assert [part[0].tobytes() for part in alone] == [part[k].tobytes() for part in together]
    assert np.array_equal(start, before)


def test_following_the_path_does_not_change_it():
    # One more step makes the end of a shorter training a point of the path: its gap is what the sums grow by.
    x, y, start = random_problem(2, 24, 3)
    sgd = LocalSgd(x, y, np.array([0, 24]), LOGISTIC, 0.0, True, True)
    for epochs in (1, 2, 3):
        end = sgd.train(start[None], one_task(epochs=epochs, batch=24))[0]
        shorter, longer = (sgd.path_moments(start[None], one_task(epochs=e, batch=24)) for e in (epochs, epochs + 1))
        np.testing.assert_allclose((longer[1] - shorter[1])[0], end - start, rtol=1e-12, atol=1e-14)
        assert (longer[2] - shorter[2])[0] == pytest.approx(((end - start) ** 2).sum(), rel=1e-12)


def test_an_impossible_task_is_refused():
    x, y, start = random_problem(1, 20, 3)
    with pytest.raises(ConfigError, match=r"task 0 asks client 0 for -1 epochs"):
        moments_of_one(x, y, start, epochs=-1)
