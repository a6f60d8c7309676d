"""Clipping at the client, and a server that takes no longer change."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.uplinks import Clip, ErrorFeedback, TopK
from asyncfed.uplinks.chain import decode_message, encode_change

F8 = np.dtype(np.float64)


def seen(uplink, change):
    message, memory = uplink.encode({}, change, 0)
    assert memory == {}
    return uplink.decode(message, change.size, change.dtype)


def test_by_hand():
    assert seen(Clip(norm=2.5), np.array([3.0, -4.0])) == pytest.approx(np.array([1.5, -2.0]), rel=1e-15)


def test_what_is_short_enough_is_sent_as_it_is():
    change = np.array([3.0, -4.0, 0.1])
    assert seen(Clip(norm=6.0), change).tobytes() == change.tobytes()
    assert seen(Clip(norm=6.0), np.zeros(3)).tobytes() == np.zeros(3).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_server_accepts_what_rounding_left_and_nothing_longer(dtype):
    draws, clip = np.random.default_rng(0), Clip(norm=0.3)
    for size in (1, 10, 1000, 100_000):
        change = (1.0 + draws.uniform(size=size)).astype(dtype)
        message, _ = clip.encode({}, change, 0)
        decoded = clip.decode(message, size, np.dtype(dtype))
        with pytest.raises(ValueError, match=r"its norm is .*; it was to be clipped to 0\.3"):
            clip.decode({"change": decoded * dtype(1.001)}, size, np.dtype(dtype))


def test_what_is_no_number_reaches_the_checks_of_all_updates():
    """A simulated model that diverges is to be told as such."""
    for bad in (np.nan, np.inf):
        assert np.isnan(seen(Clip(norm=1.0), np.array([bad, 1.0]))).any()


def test_it_comes_before_a_codec_or_after_it():
    change = np.array([3.0, 0.1, -4.0])
    sparse = TopK(fraction=0.4)
    message, memory = encode_change(
        (ErrorFeedback(codec=sparse), Clip(norm=1.0)), {"0/residual": np.zeros(3)}, change, 0, np.zeros(3)
    )
    assert decode_message((sparse, Clip(norm=1.0)), message, 3, F8)[0] == pytest.approx(np.array([0.6, 0.0, -0.8]))
    assert memory["0/residual"].tolist() == [0.0, 0.1, 0.0]


@pytest.mark.parametrize("norm", [0.0, -1.0, float("inf"), float("nan")])
def test_a_norm_that_is_none_is_refused(norm):
    with pytest.raises(ConfigError, match=r"uplink.norm is .*; it must be a positive number"):
        Clip(norm=norm)
