"""QSGD, Sign, RandK, Cast and Whole by hand."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.uplinks import QSGD, Cast, ErrorFeedback, RandK, Sign, TopK, Whole
from asyncfed.uplinks.qsgd import round_up

DOUBLE = np.dtype(np.float64)


def through(codec, change, key=0):
    return codec.decode(codec.encode({}, change, key)[0], change.size, change.dtype)


def with_uplinks(experiment, *uplinks):
    strategy = experiment.strategy
    return af.replace(experiment, strategy=af.replace(strategy, work=af.replace(strategy.work, uplink=uplinks)))


def test_qsgd_by_hand():
    """Norm 5; 3/5 of 5 levels is level 3 exactly, 4/5 is level 4: nothing is left to chance."""
    message, _ = QSGD(levels=5, bucket=0).encode({}, np.array([3.0, -4.0]), key=1)
    assert message["norms"].tolist() == [5.0]
    assert message["levels"].tolist() == [(5 + 3) | (5 - 4) << 4]
    assert through(QSGD(levels=5, bucket=0), np.array([3.0, -4.0])).tolist() == pytest.approx([3.0, -4.0], rel=1e-15)


def test_qsgd_depends_on_its_key_and_a_bucket_on_its_own_norm():
    change = np.linspace(-1.0, 1.0, 40)
    assert not np.array_equal(through(QSGD(), change, key=1), through(QSGD(), change, key=2))
    quiet = np.concatenate([change, np.zeros(40)])
    assert not through(QSGD(levels=1, bucket=40), quiet)[40:].any()


@pytest.mark.parametrize("codec", [QSGD(bucket=4), Sign(bucket=4)])
def test_a_bucket_with_a_number_that_is_not_finite_is_not_finite(codec):
    change = np.array([1.0, np.nan, 0.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    seen = through(codec, change)
    assert not np.isfinite(seen[:4]).any()
    assert np.isfinite(seen[4:]).all()


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-38, 1e200, 1e307])
def test_qsgd_of_very_small_and_very_large_numbers(size):
    seen = through(QSGD(levels=1000, bucket=0), np.full(4, size))
    assert seen == pytest.approx(np.full(4, size), rel=2e-3, abs=2e-323)


def test_norms_are_rounded_up():
    values = np.array([0.0, 1.0, 0.1, 1e39, np.inf])
    rounded = round_up(values, np.dtype(np.float32))
    assert (rounded.astype(np.float64)[:3] >= values[:3]).all()
    assert rounded[3] == np.finfo(np.float32).max
    assert rounded[4] == np.inf
    assert round_up(values, DOUBLE).tolist() == values.tolist()


def test_sign_by_hand():
    assert through(Sign(), np.array([1.0, -2.0, 0.0, 5.0])).tolist() == [2.0, -2.0, 2.0, 2.0]
    assert through(Sign(bucket=2), np.array([1.0, -2.0, 0.0, 5.0, -3.0])).tolist() == [1.5, -1.5, 2.5, 2.5, -3.0]


def test_rand_k_sends_the_entries_that_its_seed_draws():
    change = np.arange(1.0, 41.0)
    for key in range(5):
        seen = through(RandK(fraction=0.25, scaled=False), change, key)
        assert np.count_nonzero(seen) == 10
        assert set(seen[seen != 0]) <= set(change)
        assert np.array_equal(through(RandK(fraction=0.25), change, key), 4.0 * seen)


def test_rand_k_does_not_send_its_key():
    message, _ = RandK().encode({}, np.ones(10), key=12345)
    assert int(message["seed"][0]) != 12345


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: QSGD(levels=0), "uplink.levels is 0; it must be between 1 and 32767"),
        (lambda: QSGD(levels=40_000), "uplink.levels is 40000"),
        (lambda: QSGD(bucket=-1), "uplink.bucket is -1"),
        (lambda: Sign(bucket=-1), "uplink.bucket is -1"),
        (lambda: RandK(fraction=0.0), "uplink.fraction is 0.0"),
    ],
)
def test_impossible_settings_are_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


@pytest.mark.parametrize(
    ("codec", "name", "array", "words"),
    [
        (QSGD(levels=2, bucket=0), "levels", [0b00_111_000], "its levels must be within 2 of zero"),
        (QSGD(levels=2, bucket=0), "levels", [0b01_000_000], "its levels must be within"),
        (QSGD(levels=2, bucket=0), "norms", [-1.0], "norms is negative"),
        (Sign(), "scales", [-1.0], "scales is negative"),
        (Sign(), "signs", [0b111], "more than 2 signs"),
    ],
)
def test_impossible_messages_are_refused(codec, name, array, words):
    message, _ = codec.encode({}, np.array([1.0, -2.0]), key=0)
    message[name] = np.array(array, message[name].dtype)
    with pytest.raises(ValueError, match=words):
        codec.decode(message, 2, DOUBLE)


def test_whole_is_no_uplink_at_all(small):
    """Byte for byte: journal, models, all. Inside error feedback it sends the change, and forgets nothing."""
    assert Work(uplink=(Whole(), Whole())) == Work()
    assert Work(uplink=(Whole(), TopK())).uplink == (Whole(), TopK())
    plain = small()
    models = [
        af.run(with_uplinks(plain, *uplinks)).params for uplinks in ((), (Whole(),), (ErrorFeedback(codec=Whole()),))
    ]
    assert models[0].tobytes() == models[1].tobytes()
    assert models[2] == pytest.approx(models[0], rel=1e-9)


def test_casts_take_two_bytes():
    assert Cast().size(10, 4) == Cast(to="float16").size(10, 8) == 20
    assert Cast(to="float32").size(10, 8) == 40
