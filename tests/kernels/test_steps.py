"""So many mini-batch steps instead of whole epochs, and how many were made: the kernel against its readable twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import DataError
from asyncfed.core.types import Work
from asyncfed.kernels import reference
from asyncfed.kernels.losses import LEAST_SQUARES, LOGISTIC, LOSS_CODES
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.tasks import Tasks
from asyncfed.kernels.threads import SMALL

KEY = 0xFEDC_BA98_7654_3210


def one_task(key=KEY, epochs=1, batch=32, lr=0.1, decay=0.0, prox=0.0, patience=0, steps=0):
    work = np.array([[epochs, batch, lr, decay, prox, patience, steps]], float)
    return Tasks(np.array([0]), np.array([key], dtype=np.uint64), work)


def client(seed, rows, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, d)), rng.choice([-1.0, 1.0], rows), rng.normal(size=d + 1)


def kernel(x, y, loss_code=LOGISTIC, l2=0.0):
    return LocalSgd(x, y, np.array([0, len(y)]), loss_code, l2, True, True)


def train(x, y, start, loss_code=LOGISTIC, l2=0.0, **how):
    done = np.full(1, -1)
    return kernel(x, y, loss_code, l2).train(start[None], one_task(**how), steps_done=done)[0], int(done[0])


@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(0, 41),
    how=st.fixed_dictionaries(
        {
            "key": st.integers(0, 2**64 - 1),
            "epochs": st.integers(1, 3),
            "batch": st.integers(1, 50),
            "lr": st.floats(1e-3, 0.05),
            "decay": st.sampled_from([0.0, 0.5]),
            "prox": st.sampled_from([0.0, 0.3]),
            "patience": st.integers(0, 3),
            "steps": st.integers(0, 30),
        }
    ),
)
@settings(max_examples=25, deadline=None)
def test_equals_the_twin(loss_code, seed, rows, how):
    x, y, start = client(seed, rows)
    path = reference.train_path(x, y, start, loss_code=loss_code, l2=0.1, **how)
    trained, done = train(x, y, start, loss_code, 0.1, **how)
    assert done == len(path) - 1
    assert trained.tobytes() == path[-1].tobytes()
    if not how["patience"]:
        ends = {"steps": how["steps"]} if how["steps"] else {}
        assert done == Work(epochs=how["epochs"], batch_size=how["batch"], **ends).count_steps(rows)
    steps, sums, squares = kernel(x, y, loss_code, 0.1).path_moments(start[None], one_task(**how))
    moments = reference.path_moments(x, y, start, loss_code=loss_code, l2=0.1, **how)
    assert steps[0] == moments[0] == done
    np.testing.assert_allclose(sums[0], moments[1], rtol=1e-10, atol=1e-10)
    assert squares[0] == pytest.approx(moments[2], rel=1e-10, abs=1e-12)


@given(
    values=st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=8, max_size=8),
    key=st.integers(0, 2**64 - 1),
    batch=st.sampled_from([1, 2, 4, 8]),
    steps=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_twin_to_the_last_bit_where_no_sum_is_rounded(values, key, batch, steps):
    # Short binary fractions: so few steps of them are exact in double precision, in whatever order they are added.
    x, y, start = np.array(values)[:, None], np.arange(8.0), np.zeros(2)
    trained, done = train(x, y, start, LEAST_SQUARES, key=key, batch=batch, lr=0.25, steps=steps)
    path = reference.train_path(x, y, start, key, batch=batch, lr=0.25, steps=steps, loss_code=LEAST_SQUARES)
    assert np.array_equal(trained, path[-1])
    assert done == steps


@given(rows=st.integers(1, 30), epochs=st.integers(1, 4), batch=st.integers(1, 40), decay=st.sampled_from([0.0, 0.7]))
@settings(max_examples=40, deadline=None)
def test_the_steps_of_whole_epochs_are_those_epochs(rows, epochs, batch, decay):
    x, y, start = client(rows, rows)
    whole, done = train(x, y, start, epochs=epochs, batch=batch, decay=decay)
    counted, also = train(x, y, start, epochs=99, batch=batch, decay=decay, steps=done)
    assert whole.tobytes() == counted.tobytes()
    assert done == also == epochs * -(-rows // batch)


@pytest.mark.parametrize(("rows", "batch"), [(10, 4), (10, 10), (1, 1), (9, 2)])
def test_each_number_of_steps_goes_one_step_further_on_the_same_path(rows, batch):
    x, y, start = client(5, rows)
    path = reference.train_path(x, y, start, KEY, batch=batch, lr=0.1, decay=0.5, steps=12, loss_code=LOGISTIC)
    for steps in range(1, 13):
        trained, done = train(x, y, start, batch=batch, decay=0.5, steps=steps)
        np.testing.assert_allclose(trained, path[steps], rtol=1e-12, atol=1e-13)
        assert done == steps


def test_columns_of_zeros_change_nothing():
    x, y, start = client(2, 23)
    full = one_task(epochs=3, batch=5)
    plain = full._replace(work=np.ascontiguousarray(full.work[:, :5]))
    sgd = kernel(x, y)
    assert sgd.train(start[None], full).tobytes() == sgd.train(start[None], plain).tobytes()


def test_a_client_without_rows_makes_no_step():
    x, y, start = client(0, 0)
    trained, done = train(x, y, start, steps=7)
    assert done == 0
    assert trained.tobytes() == start.tobytes()


def test_patience_may_end_it_before_its_steps():
    x, y, start = client(3, 17)
    asked, patient = (train(x, y, start, lr=2.0, batch=5, steps=400, patience=p)[1] for p in (0, 1))
    assert asked == 400
    assert 0 < patient < 400


def many_tasks(tasks=40):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 400, 12)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    x, y = rng.normal(size=(offsets[-1], 7)), rng.choice([-1.0, 1.0], offsets[-1])
    clients, batch = rng.integers(0, 12, tasks), rng.integers(1, 64, tasks)
    steps = rng.integers(0, 2, tasks) * rng.integers(200, 2000, tasks)
    assert (steps * np.minimum(batch, sizes[clients])).sum() * 14 > SMALL, "too little work to start threads"
    patience, epochs = rng.integers(0, 2, tasks) * 2, rng.integers(1, 9, tasks)
    rates = (rng.uniform(0.01, 0.3, tasks), rng.uniform(0, 1, tasks), rng.uniform(0, 1, tasks))
    work = np.column_stack([epochs, batch, *rates, patience, steps]).astype(np.float64)
    keys = rng.integers(0, 2**63, tasks).astype(np.uint64)
    sgd = LocalSgd(x, y, offsets, LOGISTIC, 0.01, True, True)
    return sgd, rng.normal(size=(tasks, 8)), Tasks(clients, keys, work)


def test_alone_together_and_on_threads_to_the_last_bit():
    sgd, start, tasks = many_tasks()
    done = np.zeros(40, np.int64)
    together = sgd.train(start, tasks, steps_done=done)
    assert len(set(done.tolist())) > 10
    for threads in (2, 5):
        on_threads = np.zeros(40, np.int64)
        assert sgd.train(start, tasks, threads, steps_done=on_threads).tobytes() == together.tobytes()
        assert np.array_equal(on_threads, done)
        followed = np.zeros(40, np.int64)
        assert np.array_equal(sgd.path_moments(start, tasks, threads, steps_done=followed)[0], done)
        assert np.array_equal(followed, done)
    for k in (0, 17, 39):
        one = np.zeros(1, np.int64)
        alone = sgd.train(start[k : k + 1], Tasks(*(column[k : k + 1] for column in tasks)), steps_done=one)
        assert alone.tobytes() == together[k].tobytes()
        assert one[0] == done[k]


def test_counts_of_a_wrong_shape_are_refused():
    x, y, start = client(1, 10)
    with pytest.raises(DataError, match=r"steps_done has shape \(2,\); 1 tasks need \(1,\)"):
        kernel(x, y).train(start[None], one_task(), steps_done=np.zeros(2, np.int64))
