"""The wire format, version 1: how the messages of client and server become bytes, and back.

A message is a MessagePack header, then the numbers of one array.

    offset  bytes  what
    0       3      "AFW", so that other protocols are recognised at once
    3       1      version of this format, 1
    4       4      length of the header, little-endian
    8       8      length of the body, little-endian
    16      ...    header: one of the messages below, as MessagePack
    ...     ...    body: the array, little-endian, nothing else

Nothing is ever unpickled. Lengths are checked before anything of that length is read or allocated, and every way in
which bytes can be wrong ends in a `WireError`.
"""

from __future__ import annotations

import struct
from typing import Any, Literal, TypeAlias

import numpy as np

from asyncfed.core.errors import ProtocolError
from asyncfed.core.record import Record, ValidationError, pack, unpack
from asyncfed.core.types import Work

MAGIC = b"AFW"
VERSION = 1
PREFIX_BYTES = 16
MAX_HEADER_BYTES = 16 * 1024
_prefix = struct.Struct("<3sBIQ")


class WireError(ProtocolError):
    """Received bytes that are no valid message."""


ArrayType = Literal["<f4", "<f8"]


class Hello(Record, tag_field="kind", tag="hello"):
    """Client to server, its first message: it is ready."""

    client: int


class Task(Record, tag_field="kind", tag="task"):
    """Server to client: train the model in the body.

    `session` is to be sent back with the result; `key` seeds all randomness of the training.
    """

    session: str
    ticket: int
    base_version: int
    work: Work
    key: int
    dtype: ArrayType


class Result(Record, tag_field="kind", tag="result"):
    """Client to server: the trained model is in the body."""

    session: str
    ticket: int
    duration: float
    num_examples: int
    dtype: ArrayType
    metrics: dict[str, float] | None = None


Message: TypeAlias = Hello | Task | Result


def encode(message: Message, array: np.ndarray | None = None) -> list[bytes | memoryview]:
    """The frame of a message in pieces to be written one after another, so that a large array is not copied.

    >>> frame = b"".join(encode(Hello(3)))
    >>> decode(frame, max_body_bytes=0)[0]
    Hello(client=3)
    """
    header = pack(message)
    if array is None:
        return [_prefix.pack(MAGIC, VERSION, len(header), 0) + header]
    body = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return [_prefix.pack(MAGIC, VERSION, len(header), body.nbytes) + header, body.data.cast("B")]


def dtype_name(dtype: np.dtype[Any]) -> ArrayType:
    """How parameters of this type are named on the wire."""
    if dtype == np.float32:
        return "<f4"
    if dtype == np.float64:
        return "<f8"
    raise WireError(f"parameters of type {dtype} cannot be sent; they must be float32 or float64.")


def decode_prefix(prefix: bytes, max_body_bytes: int) -> tuple[int, int]:
    """How many bytes of header and of body follow this prefix; refused if either is too long."""
    if len(prefix) != PREFIX_BYTES:
        raise WireError(f"the message ended after {len(prefix)} bytes; its prefix alone has {PREFIX_BYTES}.")
    magic, version, header, body = _prefix.unpack(prefix)
    if magic != MAGIC:
        raise WireError(f"the message begins with {magic!r}; it must begin with {MAGIC!r}.")
    if version != VERSION:
        raise WireError(
            f"the message has format {version}; this AsyncFed reads format {VERSION}. "
            "Install the same version of AsyncFed on server and clients."
        )
    if header > MAX_HEADER_BYTES:
        raise WireError(f"the header is said to have {header} bytes; at most {MAX_HEADER_BYTES} are read.")
    if body > max_body_bytes:
        raise WireError(f"the body is said to have {body} bytes; at most {max_body_bytes} are read.")
    return header, body


def decode_header(header: bytes | bytearray) -> Message:
    """The message in a header."""
    try:
        return unpack(header, Message)  # type: ignore[arg-type]
    except (ValidationError, ValueError) as error:  # a Work may also be refused for its values
        raise WireError(f"the header is no valid message ({error}).") from error


def decode_array(dtype: ArrayType, body: bytes | bytearray) -> np.ndarray:
    """The flat array in a body, in this machine's byte order."""
    kind = np.dtype(dtype)
    if len(body) % kind.itemsize:
        raise WireError(f"the body has {len(body)} bytes, which is no whole number of {kind.itemsize}-byte numbers.")
    array = np.frombuffer(body, kind)
    return array.astype(kind.newbyteorder("="), copy=False)


def decode(frame: bytes, max_body_bytes: int) -> tuple[Message, bytes]:
    """A whole frame at once: its message and its body."""
    header, body = decode_prefix(frame[:PREFIX_BYTES], max_body_bytes)
    if len(frame) != PREFIX_BYTES + header + body:
        raise WireError(f"the message has {len(frame)} bytes; its prefix says {PREFIX_BYTES + header + body}.")
    return decode_header(frame[PREFIX_BYTES : PREFIX_BYTES + header]), frame[PREFIX_BYTES + header :]
