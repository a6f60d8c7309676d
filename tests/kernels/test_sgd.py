"""The compiled SGD against its readable twin, against hand computation, and against itself on more threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.random import Stream
from asyncfed.kernels import reference, sgd, sgd_loops
from asyncfed.kernels.losses import HINGE, LEAST_SQUARES, LOSS_CODES, MSE, loss_slopes, loss_values
from asyncfed.kernels.threads import SMALL

KEY = 0xFEDC_BA98_7654_3210


def train_one(x, y, start, key=KEY, *, epochs=1, batch=32, lr=0.1, decay=0.0, prox=0.0, loss_code=LEAST_SQUARES, **how):
    options = {"l2": 0.0, "penalize_bias": True, "fit_bias": True} | how
    return sgd.train_many(
        x,
        y,
        np.array([0, len(y)]),
        np.array([0]),
        np.asarray(start)[None],
        np.array([key], dtype=np.uint64),
        np.array([epochs]),
        np.array([batch]),
        np.array([lr]),
        np.atleast_1d(decay),
        np.array([prox]),
        loss_code,
        **options,
    )[0]


def random_problem(seed, rows, d, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(rows, d)).astype(dtype),
        rng.choice([-1.0, 1.0], rows).astype(dtype),
        rng.normal(size=d + 1),
    )


@given(n=st.integers(0, 70), key=st.integers(0, 2**64 - 1), epochs=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_shuffles_are_those_of_the_twin_epoch_after_epoch(n, key, epochs):
    fast, word = np.arange(n, dtype=np.uint32), np.uint64(key)
    slow, stream = list(range(n)), Stream(key)
    for _ in range(epochs):
        word = np.uint64(sgd_loops.shuffle(fast, word))
        reference.shuffle(slow, stream)
        assert fast.tolist() == slow
    assert sorted(slow) == list(range(n))


def test_every_order_of_four_rows_is_about_equally_likely():
    counts = {}
    for key in range(4800):
        order = np.arange(4, dtype=np.uint32)
        sgd_loops.shuffle(order, np.uint64(key * 0x1234_5678_9ABC_DEF1 % 2**64))
        counts[tuple(order)] = counts.get(tuple(order), 0) + 1
    assert len(counts) == 24
    chi_square = sum((count - 200) ** 2 / 200 for count in counts.values())
    assert chi_square < 49.7  # the 0.999 quantile at 23 degrees of freedom


PROBLEMS = {
    "seed": st.integers(0, 10_000),
    "rows": st.integers(1, 41),
    "d": st.integers(1, 13),
    "key": st.integers(0, 2**64 - 1),
    "epochs": st.integers(1, 3),
    "batch": st.integers(1, 50),
    "lr": st.floats(1e-3, 0.05),
    "decay": st.sampled_from([0.0, 0.5, 1.0]),
    "prox": st.sampled_from([0.0, 0.3]),
    "l2": st.sampled_from([0.0, 0.2]),
    "penalize_bias": st.booleans(),
    "fit_bias": st.booleans(),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
@given(**PROBLEMS)
@settings(max_examples=25, deadline=None)
def test_has_the_bits_of_the_twin(loss_code, dtype, seed, rows, d, key, fit_bias, **options):
    x, y, start = random_problem(seed, rows, d, dtype)
    start = start[: d + fit_bias]
    fast = train_one(x, y, start, key, loss_code=loss_code, fit_bias=fit_bias, **options)
    slow = reference.train_one(x, y, start, key, loss_code=loss_code, fit_bias=fit_bias, **options)
    assert fast.dtype == slow.dtype == dtype
    assert fast.tobytes() == slow.tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 3, 10, 50, 500, 1000, 1003])
def test_has_the_bits_of_the_twin_for_any_number_of_features_and_rows_of_a_batch(d, dtype):
    for batch in range(1, 34) if d <= 50 else (1, 7, 32, 33):
        x, y, start = random_problem(batch, batch + 5, d, dtype)
        options = {"epochs": 1, "batch": batch, "lr": 0.1 / d, "loss_code": (HINGE, MSE)[batch % 2]}
        fast, slow = train_one(x, y, start, **options), reference.train_one(x, y, start, KEY, **options)
        assert fast.tobytes() == slow.tobytes(), batch


@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
def test_the_twin_makes_the_steps_of_the_equation(loss_code):
    x, y, start = random_problem(4, 30, 6)
    z = np.column_stack([x, np.ones(30)])
    shift = np.linspace(-0.1, 0.1, 7)
    order, params, penalty = list(range(30)), start, np.array([0.2] * 6 + [0.0])
    reference.shuffle(order, Stream(KEY))
    for first in (0, 13, 26):
        rows = order[first : first + 13]
        slopes = loss_slopes(loss_code, z[rows] @ params, y[rows], 0.5)
        params = params - 0.05 * (slopes @ z[rows] / len(rows) + penalty * params + 0.3 * (params - start) + shift)
    options = {"prox": 0.3, "l2": 0.2, "penalize_bias": False, "hinge_width": 0.5, "correction": shift}
    slow = reference.train_one(x, y, start, KEY, epochs=1, batch=13, lr=0.05, loss_code=loss_code, **options)
    np.testing.assert_allclose(slow, params, rtol=1e-12, atol=1e-12)


def test_two_steps_by_hand():
    # Two rows in batches of one: whichever comes first, both rows are (z, y) = (2, 3).
    # Step 1 from (0, 0): m = 0, slope −3, gradient (−6, −3), lr ½: (3, 1.5).
    # Step 2: m = 7.5, slope 4.5, gradient (9, 4.5): (−1.5, −0.75).
    x, y = np.full((2, 1), 2.0), np.full(2, 3.0)
    assert train_one(x, y, np.zeros(2), batch=1, lr=0.5).tolist() == [-1.5, -0.75]


def test_the_rate_decays_with_the_local_epoch():
    # f = ½ (w − 1)² from 0. Epoch 0 at rate ½: w = ½. Epoch 1 at rate ½ / 2^1: w = ½ + ¼ · ½ = 0.625.
    x, y = np.ones((1, 1)), np.ones(1)
    assert train_one(x, y, np.zeros(1), epochs=2, lr=0.5, decay=1.0, fit_bias=False).tolist() == [0.625]


def test_proximal_term_pulls_back_to_the_start_by_hand():
    # From w = 2, f = ½ w², lr ½, prox 1. Step 1: 2 − ½ · 2 = 1. Step 2: 1 − ½ (1 + (1 − 2)) = 1.
    x, y = np.ones((1, 1)), np.zeros(1)
    assert train_one(x, y, [2.0], epochs=2, lr=0.5, prox=1.0, fit_bias=False).tolist() == [1.0]


@pytest.mark.parametrize(("penalize_bias", "bias"), [(True, 1.0), (False, 2.0)])
def test_the_penalty_reaches_the_bias_only_when_asked(penalize_bias, bias):
    # The margin 2 equals the target, so only the penalty moves anything: w = 0 stays, b ← 2 − ½ · 1 · 2.
    x, y = np.ones((1, 1)), np.full(1, 2.0)
    trained = train_one(x, y, [0.0, 2.0], lr=0.5, l2=1.0, penalize_bias=penalize_bias)
    assert trained.tolist() == [0.0, bias]


def test_hinge_does_not_move_at_the_kink_and_does_just_before_it():
    x, y = np.ones((1, 1)), np.ones(1)
    assert train_one(x, y, [1.0], lr=0.5, loss_code=HINGE, fit_bias=False).tolist() == [1.0]
    assert train_one(x, y, [0.75], lr=0.5, loss_code=HINGE, fit_bias=False).tolist() == [1.25]


@pytest.mark.parametrize("loss_code", sorted(LOSS_CODES.values()))
def test_a_full_batch_step_follows_the_finite_difference_gradient(loss_code):
    x, y, start = random_problem(5, 23, 4)

    def mean_loss(params):
        values = loss_values(loss_code, x @ params[:4] + params[4], y)
        return values.mean() + 0.5 * 0.3 * params[:4] @ params[:4]

    gradient = (
        start - train_one(x, y, start, batch=23, lr=1.0, loss_code=loss_code, l2=0.3, penalize_bias=False)
    ) / 1.0
    for j, direction in enumerate(np.eye(5) * 1e-6):
        numeric = (mean_loss(start + direction) - mean_loss(start - direction)) / 2e-6
        assert gradient[j] == pytest.approx(numeric, abs=1e-7)


MANY_MODEL = (LOSS_CODES["logistic"], 0.01, True, True)


def many(threads, dtype=np.float64, tasks=40):
    """40 unlike tasks on 12 clients of unlike size; also the arrays they were made from."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 400, 12)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    x, y = rng.normal(size=(offsets[-1], 7)).astype(dtype), rng.choice([-1, 1], offsets[-1]).astype(dtype)
    clients, epochs = rng.integers(0, 12, tasks), rng.integers(40, 120, tasks)
    assert (epochs * sizes[clients]).sum() * 14 > SMALL, "too little work to start threads"
    start, keys = rng.normal(size=(tasks, 8)), rng.integers(0, 2**63, tasks).astype(np.uint64)
    lr, decay, prox = rng.uniform(0.01, 0.1, tasks), rng.uniform(0, 1, tasks), rng.uniform(0, 1, tasks)
    arrays = (x, y, offsets, clients, start, keys, epochs, rng.integers(1, 64, tasks), lr, decay, prox)
    return sgd.train_many(*arrays, *MANY_MODEL, threads), arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit(dtype):
    serial, _ = many(1, dtype=dtype)
    for threads in (2, 5):
        assert many(threads, dtype=dtype)[0].tobytes() == serial.tobytes()


def test_each_task_is_as_if_alone():
    together, (x, y, offsets, *columns) = many(1)
    for k in (0, 17, 39):
        alone = sgd.train_many(x, y, offsets, *(c[k : k + 1] for c in columns), *MANY_MODEL)
        assert alone[0].tobytes() == together[k].tobytes()


def test_start_and_data_are_left_alone_and_may_be_read_only():
    x, y, start = random_problem(1, 20, 3)
    for array in (x, y, start):
        array.flags.writeable = False
    before = start.copy()
    assert not np.array_equal(train_one(x, y, start), before)
    assert np.array_equal(start, before)


def test_no_rows_and_no_epochs_change_nothing():
    x, y, start = random_problem(1, 20, 3)
    assert np.array_equal(train_one(x[:0], y[:0], start), start)
    assert np.array_equal(train_one(x, y, start, epochs=0), start)


def test_errors_name_the_fault():
    x, y, start = random_problem(1, 20, 3)
    with pytest.raises(ConfigError, match=r"task 0 asks client 0 for 1 epochs in batches of 0.*a batch at least 1"):
        train_one(x, y, start, batch=0)
    with pytest.raises(
        DataError, match=r"start has shape \(1, 4\); 1 tasks of 3 features without a bias need \(1, 3\)"
    ):
        train_one(x, y, start, fit_bias=False)
    with pytest.raises(ConfigError, match=r"loss_code is 9; the codes of the losses are .*'hinge': 3"):
        train_one(x, y, start, loss_code=9)
    with pytest.raises(DataError, match=r"x has dtype int64.*np.ascontiguousarray"):
        train_one(x.astype(np.int64), y, start)
    with pytest.raises(DataError, match="C-contiguous"):
        train_one(np.asfortranarray(x), y, start)
    with pytest.raises(DataError, match=r"y has dtype float32.*needs x's dtype float64"):
        train_one(x, y.astype(np.float32), start)
    with pytest.raises(DataError, match=r"the columns of the work have lengths .*2.*; there are 1 tasks"):
        train_one(x, y, start, decay=[0.0, 0.0])
