"""The client's own noise: of the size that is said, for clipped changes, from the key alone."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.noise_normals import noise_normals
from asyncfed.uplinks import Clip, LocalNoise, TopK
from asyncfed.uplinks.chain import decode_message, encode_change

NOISE = LocalNoise(clip=0.5, multiplier=2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clipped_and_noised(dtype):
    change = np.full(40_000, 1.0, dtype)
    message, memory = NOISE.encode({}, change, key=7)
    sent = NOISE.decode(message, change.size, change.dtype)
    noise = sent.astype(float) - 0.5 / np.sqrt(change.size)
    assert (sent.dtype, memory) == (dtype, {})
    assert noise == pytest.approx(noise_normals(7, change.size), abs=1e-5)  # z C = 1
    assert noise.std() == pytest.approx(1.0, rel=0.02)
    assert NOISE.draws_noise


def test_without_noise_it_clips():
    change = np.array([3.0, 4.0])
    quiet = LocalNoise(clip=0.5, multiplier=0.0).encode({}, change, 1)[0]["change"]
    assert quiet.tolist() == Clip(norm=0.5).encode({}, change, 1)[0]["change"].tolist()


def test_what_follows_sees_the_noised_change_only():
    change, uplinks = np.zeros(100), (NOISE, TopK(fraction=0.05))
    sent, _ = decode_message(uplinks, encode_change(uplinks, {}, change, 3, np.zeros(100))[0], 100, change.dtype)
    assert np.count_nonzero(sent) == 5


@pytest.mark.parametrize("settings", [{"clip": 0.0}, {"multiplier": -1.0}, {"multiplier": float("inf")}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match=f"uplink.{next(iter(settings))}"):
        LocalNoise(**settings)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_training_that_diverged_looks_like_one_that_changed_nothing(value):
    change = np.array([1.0, value, 2.0], np.float32)
    sent, nothing = (NOISE.encode({}, vector, 7)[0]["change"] for vector in (change, np.zeros_like(change)))
    assert sent.tobytes() == nothing.tobytes()
    assert np.abs(nothing).min() > 0
