import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.types import Work
from asyncfed.live.wire import (
    MAX_HEADER_BYTES,
    Hello,
    Result,
    Task,
    WireError,
    decode,
    decode_array,
    decode_prefix,
    dtype_name,
    encode,
)

LIMIT = 10_000
MESSAGES = [
    (Hello(3), None),
    (Task("s", 7, 2, Work(), 2**64 - 1, "<f8"), np.arange(11.0)),
    (Result("s", 7, 0.5, 8, "<f4", {"loss": 0.25}), np.arange(11, dtype=np.float32)),
]
FRAMES = [b"".join(encode(message, array)) for message, array in MESSAGES]


@pytest.mark.parametrize(("message", "array"), MESSAGES, ids=lambda m: type(m).__name__)
def test_what_is_sent_is_what_arrives(message, array):
    arrived, body = decode(b"".join(encode(message, array)), LIMIT)
    assert arrived == message
    if array is None:
        assert body == b""
    else:
        assert decode_array(message.dtype, body).tobytes() == array.tobytes()


def test_the_body_is_the_array_and_nothing_else():
    prefix_and_header, body = encode(*MESSAGES[1])
    assert bytes(body) == np.arange(11.0).astype("<f8").tobytes()
    assert prefix_and_header.startswith(b"AFW\x01")


def test_other_byte_orders_are_turned_round():
    _, body = encode(Task("s", 7, 2, Work(), 1, "<f8"), np.array([1.0, 2.0], ">f8"))
    assert bytes(body) == np.array([1.0, 2.0], "<f8").tobytes()


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data):
    with pytest.raises(WireError):
        decode(data, LIMIT)


@given(st.binary(max_size=100))
def test_random_headers_are_refused(header):
    frame = b"AFW\x01" + len(header).to_bytes(4, "little") + bytes(8) + header
    with pytest.raises(WireError, match="the header is no valid message"):
        decode(frame, LIMIT)


@given(st.sampled_from(FRAMES), st.data())
def test_truncated_frames_are_refused(frame, data):
    with pytest.raises(WireError):
        decode(frame[: data.draw(st.integers(0, len(frame) - 1))], LIMIT)


@given(st.sampled_from(FRAMES), st.data())
def test_flipped_bits_are_refused_or_make_another_message_but_never_crash(frame, data):
    changed = bytearray(frame)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(frame) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        message, body = decode(bytes(changed), LIMIT)
        if not isinstance(message, Hello):
            decode_array(message.dtype, body)
    except WireError:
        pass


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        (b"GET / HTTP/1.1\r\n", "begins with b'GET'"),
        (b"AFW\x02" + bytes(12), "format 2; this AsyncFed reads format 1. Install the same version"),
        (b"AFW\x01" + (MAX_HEADER_BYTES + 1).to_bytes(4, "little") + bytes(8), "at most 16384 are read"),
        (b"AFW\x01" + bytes(4) + (2**63).to_bytes(8, "little"), "at most 10000 are read"),
        (b"AFW", "ended after 3 bytes"),
    ],
)
def test_a_prefix_is_judged_before_anything_is_read(prefix, words):
    with pytest.raises(WireError, match=words):
        decode_prefix(prefix, LIMIT)


def test_a_body_must_hold_whole_numbers():
    with pytest.raises(WireError, match="no whole number of 8-byte"):
        decode_array("<f8", bytes(12))


def test_only_floats_are_sent():
    assert [dtype_name(np.dtype(kind)) for kind in (np.float32, np.float64)] == ["<f4", "<f8"]
    with pytest.raises(WireError, match="int64 cannot be sent"):
        dtype_name(np.dtype(np.int64))


def test_a_work_with_impossible_values_is_refused():
    frame = FRAMES[1].replace(b"\xa6epochs\x01", b"\xa6epochs\x00")
    with pytest.raises(WireError, match="at least 1 local epoch"):
        decode(frame, LIMIT)
