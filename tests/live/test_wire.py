import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.types import Work
from asyncfed.live.wire import (
    MAX_HEADER_BYTES,
    Cancelled,
    Hello,
    Part,
    Result,
    Task,
    WireError,
    decode,
    decode_array,
    decode_arrays,
    decode_prefix,
    describe_parts,
    dtype_name,
    encode,
)
from asyncfed.uplinks import ErrorFeedback, TopK

LIMIT = 10_000
TWO = {"model": np.arange(11, dtype=np.float32), "correction": np.arange(11.0)}
SPARSE = {"indices": np.array([1, 5, 7], np.uint32), "values": np.array([0.5, -1.0, 2.0]), "norm": np.array(3.5)}
WORK = Work(uplink=(ErrorFeedback(codec=TopK(fraction=0.2)),))
MESSAGES = [
    (Hello(3), None),
    (Cancelled(3), None),
    (Task("s", 7, 2, Work(), 2**64 - 1, "<f8"), {"model": np.arange(11.0)}),
    (Result("s", 7, 0.5, 8, "<f4", {"loss": 0.25}), {"model": np.arange(11, dtype=np.float32)}),
    (Task("s", 7, 2, WORK, 2**64 - 1, "<f4", -1, 2**64 - 1, describe_parts(TWO)), TWO),
    (Result("s", 7, 0.5, 8, "<f8", None, 3, describe_parts(SPARSE)), SPARSE),
    (Result("s", 7, 0.5, 8, "<f8", parts=()), {}),
]
FRAMES = [b"".join(encode(message, arrays)) for message, arrays in MESSAGES]


@pytest.mark.parametrize(("message", "arrays"), MESSAGES, ids=lambda m: type(m).__name__)
def test_what_is_sent_is_what_arrives(message, arrays):
    arrived, body = decode(b"".join(encode(message, arrays)), LIMIT)
    assert arrived == message
    if arrays is None:
        assert body == b""
        return
    found = decode_arrays(arrived, body)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()
        assert found[name].flags.aligned
    assert len(body) == sum(array.nbytes for array in arrays.values())


def test_the_body_is_the_array_and_nothing_else():
    prefix_and_header, body = encode(*MESSAGES[2])
    assert bytes(body) == np.arange(11.0).astype("<f8").tobytes()
    assert prefix_and_header.startswith(b"AFW\x02")


def test_other_byte_orders_are_turned_round():
    _, body = encode(Task("s", 7, 2, Work(), 1, "<f8"), {"model": np.array([1.0, 2.0], ">f8")})
    assert bytes(body) == np.array([1.0, 2.0], "<f8").tobytes()


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data):
    with pytest.raises(WireError):
        decode(data, LIMIT)


@given(st.binary(max_size=100))
def test_random_headers_are_refused(header):
    frame = b"AFW\x02" + len(header).to_bytes(4, "little") + bytes(8) + header
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
        if isinstance(message, Task | Result):
            decode_arrays(message, body)
    except WireError:
        pass


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        (b"GET / HTTP/1.1\r\n", "begins with b'GET'"),
        (b"AFW\x03" + bytes(12), "format 3; this AsyncFed reads format 2. Install the same version"),
        (b"AFW\x02" + (MAX_HEADER_BYTES + 1).to_bytes(4, "little") + bytes(8), "at most 16384 are read"),
        (b"AFW\x02" + bytes(4) + (2**63).to_bytes(8, "little"), "at most 10000 are read"),
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
    frame = FRAMES[2].replace(b"\xa6epochs\x01", b"\xa6epochs\x00")
    with pytest.raises(WireError, match="at least 1 local epoch"):
        decode(frame, LIMIT)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((Part("a", "<f8", (3,)),), "the body has 16 bytes; its parts are said to have 24"),
        ((Part("a", "<f8", (1,)),), "the body has 16 bytes; its parts are said to have 8"),
        ((Part("a", "<f8", (1,)), Part("a", "<f8", (1,))), "the same name"),
        ((Part("a", "<f8", (-1, -2)),), r"of shape \(-1, -2\), which cannot be"),
        ((Part("a" * 65, "<f8", (2,)),), "which cannot be"),
        ((Part("a", "<f8", (1, 1, 1, 1, 2)),), "which cannot be"),
        ((Part("a", "<f8", (2**61, 2**61)),), "its parts are said to have"),
        ((Part("a", "<f8", (2,)), Part("b", "<f8", (0, 2**61, 2**61))), "'b' cannot be read"),
        (tuple(Part(str(i), "|u1", (0,)) for i in range(65)), "65 parts; at most 64"),
    ],
)
def test_parts_that_do_not_fit_the_body_are_refused(parts, words):
    with pytest.raises(WireError, match=words):
        decode_arrays(Result("s", 7, 0.5, 8, "<f8", parts=parts), bytes(16))


def test_a_plain_message_is_as_short_as_it_was():
    """The fields that came later are not written where they say nothing."""
    frame = b"".join(encode(*MESSAGES[3]))
    assert b"memory" not in frame
    assert b"parts" not in frame


def test_arrays_of_objects_are_not_sent():
    with pytest.raises(WireError, match="'x' of type object cannot be sent"):
        describe_parts({"x": np.array([None])})
