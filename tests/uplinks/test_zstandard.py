"""What arrives is what the codec sent, in fewer bytes where there is something to gain; nothing explodes."""

import sys

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.uplinks import QSGD, ErrorFeedback, TopK, Whole, Zstandard
from asyncfed.uplinks.chain import message_size

zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
DOUBLE = np.dtype(np.float64)


@pytest.mark.parametrize("codec", [TopK(fraction=0.1), QSGD(levels=1, bucket=0), Whole()], ids=str)
def test_nothing_is_lost(codec):
    change = np.random.default_rng(0).normal(size=500).astype(np.float32)
    packed, _ = Zstandard(codec=codec).encode({}, change, 5)
    plain, _ = codec.encode({}, change, 5)
    seen = Zstandard(codec=codec).decode(packed, 500, change.dtype)
    assert seen.tobytes() == codec.decode(plain, 500, change.dtype).tobytes()


def test_few_levels_become_shorter():
    """One level over a long vector: nearly all entries are zero."""
    change = np.random.default_rng(0).normal(size=20_000)
    codec = QSGD(levels=1, bucket=0)
    packed, _ = Zstandard(codec=codec).encode({}, change, 5)
    assert message_size(packed) < 0.3 * codec.size(20_000, 8)


def explosive(num_bytes, **settings):
    return np.frombuffer(zstandard.ZstdCompressor(**settings).compress(bytes(num_bytes)), np.uint8)


@pytest.mark.parametrize("settings", [{}, {"write_content_size": False}], ids=["says its length", "says nothing"])
def test_what_would_be_too_long_is_not_unpacked(settings):
    bomb = explosive(10**8, **settings)
    assert bomb.nbytes < 20_000
    with pytest.raises(ValueError, match="more than the"):
        Zstandard().decode({"packed": bomb}, 10, DOUBLE)


def test_what_lies_about_its_length_is_refused():
    bomb = bytearray(explosive(200).tobytes())
    long = explosive(5000).tobytes()
    header = zstandard.frame_header_size(long)
    lying = bytes(bomb[: zstandard.frame_header_size(bytes(bomb))]) + long[header:]
    with pytest.raises(ValueError, match="cannot be unpacked"):
        Zstandard().decode({"packed": np.frombuffer(lying, np.uint8)}, 10, DOUBLE)


@pytest.mark.parametrize(
    "inside",
    [
        b"",
        b"\x01",
        b"\xff\xff\xff\xff",
        b"\x01\x00\x00\x00\x90",
        b"\x00\x00\x00\x00" + bytes(20),
    ],
)
def test_what_unpacks_to_no_message_is_refused(inside):
    packed = np.frombuffer(zstandard.ZstdCompressor().compress(inside), np.uint8)
    with pytest.raises(ValueError):
        Zstandard().decode({"packed": packed}, 10, DOUBLE)


def test_bytes_after_the_end_are_refused():
    packed, _ = Zstandard().encode({}, np.ones(10), 0)
    more = np.append(packed["packed"], np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="cannot be unpacked"):
        Zstandard().decode({"packed": more}, 10, DOUBLE)


def test_settings_are_checked():
    with pytest.raises(ConfigError, match=r"uplink.level is 0; it must be between 1 and 22"):
        Zstandard(level=0)
    with pytest.raises(ConfigError, match="ErrorFeedback, which remembers something"):
        Zstandard(codec=ErrorFeedback())


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ConfigError, match=r"asyncfed\[zstd\]"):
        Zstandard().encode({}, np.ones(3), 0)
