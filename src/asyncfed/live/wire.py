"""The wire format, version 2: how the messages of client and server become bytes, and back.

A message is a MessagePack header, then the numbers of its arrays.

    offset  bytes  what
    0       3      "AFW", so that other protocols are recognised at once
    3       1      version of this format, 2
    4       4      length of the header, little-endian
    8       8      length of the body, little-endian
    16      ...    header: one of the messages below, as MessagePack
    ...     ...    body: the arrays one after another, little-endian, nothing else

On one machine a body may lie in memory that client and server share (`live/local/shared_memory.py`): then the header
says where, in `placed`, and the message has none.

A header that names no `parts` announces one array, the model, of its `dtype`; otherwise the body is exactly the parts,
in their order. Nothing is ever unpickled. Lengths are checked before anything of that length is read or allocated, and
every way in which bytes can be wrong ends in a `WireError`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from asyncfed.core.errors import ProtocolError
from asyncfed.core.record import UNSET, Record, UnsetType, ValidationError, pack, unpack
from asyncfed.core.types import Work

MAGIC = b"AFW"
VERSION = 2
PREFIX_BYTES = 16
MAX_HEADER_BYTES = 16 * 1024
MAX_PARTS = 64
MAX_PART_NAME = 64
MAX_CLASS_NAME = 64
MODEL, CORRECTION = "model", "correction"
DIFFERENCE = "downlink/"
"""How the names of arrays begin that are sent in place of the model."""
_prefix = struct.Struct("<3sBIQ")


class WireError(ProtocolError):
    """Received bytes that are no valid message."""


ArrayType = Literal["<f4", "<f8"]
PartType = Literal["<f2", "<f4", "<f8", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "|b1"]
PART_TYPES: frozenset[str] = frozenset(get_args(PartType))
Arrays: TypeAlias = dict[str, np.ndarray]
Body: TypeAlias = bytes | bytearray | np.ndarray
"""The bytes of a body; an array of them is one of `uint8`."""


class Part(Record):
    """One array of a body: what it is called, and how its bytes are to be read."""

    name: str
    dtype: PartType
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Its length in the body."""
        return np.dtype(self.dtype).itemsize * prod(self.shape)


Parts: TypeAlias = tuple[Part, ...] | UnsetType


class Hello(Record, tag_field="kind", tag="hello"):
    """Client to server, its first message: it is ready."""

    client: int


class Task(Record, tag_field="kind", tag="task"):
    """Server to client: train.

    Args:
        session: to be sent back with the result.
        ticket: the ticket's number.
        base_version: the model's version.
        work: what is to be done.
        key: what all randomness of the training is made from.
        dtype: of the model.
        memory: for work that remembers, the ticket whose memory is to be used; -1 for none.
        uplink_key: for work with uplinks, what all their randomness is made from.
        parts: the arrays in the body: `model`, or `downlink/...`, the difference from the model that the client started
            from in the ticket `memory`, or neither if it starts from its own; and what the rule of the server sends
            along, `correction`. UNSET: the model alone.
        placed: where the model lies in the memory that clients read, and its length, both in bytes. UNSET: in the body.
    """

    session: str
    ticket: int
    base_version: int
    work: Work
    key: int
    dtype: ArrayType
    memory: int | UnsetType = UNSET
    uplink_key: int | UnsetType = UNSET
    parts: Parts = UNSET
    placed: tuple[int, int] | UnsetType = UNSET


class Cancelled(Record, tag_field="kind", tag="cancelled"):
    """Server to client: this ticket was given up. If its result has not been sent yet, it need not be."""

    ticket: int


class Result(Record, tag_field="kind", tag="result"):
    """Client to server: what became of a task.

    Args:
        session: the task's.
        ticket: the task's.
        duration: seconds that it took.
        num_examples: the client's rows.
        dtype: of the model.
        metrics: numbers by name; `steps` where fewer may have been made than were asked for.
        memory: for work that remembers, the ticket whose memory was used; -1 if the client began anew.
        parts: the arrays in the body: the message of the uplinks, none if nothing was worth sending, or if the client
            had lost the model that a difference was from. UNSET: the trained model.
        placed: the body lies at the beginning of the client's result slot and has so many bytes. UNSET: it follows.
    """

    session: str
    ticket: int
    duration: float
    num_examples: int
    dtype: ArrayType
    metrics: dict[str, float] | None = None
    memory: int | UnsetType = UNSET
    parts: Parts = UNSET
    placed: int | UnsetType = UNSET


class Failed(Record, tag_field="kind", tag="failed"):
    """Client to server, its last message: its own code raised an exception.

    Args:
        ticket: the task's; -1 before the first.
        error: the name of the exception's class. Its text stays with the client: it may hold paths and cells of data.
    """

    ticket: int
    error: str


Message: TypeAlias = Hello | Task | Cancelled | Result | Failed


def describe_exception(name: str) -> str:
    """What log and journal say of an exception in a client's own code: its class, if the name can be that of one.

    >>> describe_exception("KeyError"), describe_exception("row 7 holds 61.5")
    ('its own code raised KeyError', 'its own code raised an exception')
    """
    is_name = name.isascii() and name.isidentifier() and len(name) <= MAX_CLASS_NAME
    return f"its own code raised {name if is_name else 'an exception'}"


def encode(message: Message, arrays: Mapping[str, np.ndarray] | None = None) -> list[bytes | memoryview]:
    """The frame of a message in pieces to be written one after another, so that a large array is not copied.

    `arrays` are the message's `parts`, in their order.

    >>> frame = b"".join(encode(Hello(3)))
    >>> decode(frame, max_body_bytes=0)[0]
    Hello(client=3)
    """
    header = pack(message)
    if not arrays:
        return [_prefix.pack(MAGIC, VERSION, len(header), 0) + header]
    pieces = [to_bytes(array) for array in arrays.values()]
    length = sum(map(len, pieces))
    return [_prefix.pack(MAGIC, VERSION, len(header), length) + header, *pieces]


def to_bytes(array: np.ndarray) -> memoryview:
    """The numbers of an array, little-endian; not copied if they lie that way already."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data.cast("B")


def describe_parts(arrays: Mapping[str, np.ndarray]) -> tuple[Part, ...]:
    """What a header says about these arrays."""
    return tuple(Part(name, _part_type(name, array), array.shape) for name, array in arrays.items())


def _part_type(name: str, array: np.ndarray) -> PartType:
    kind = array.dtype.newbyteorder("<").str
    if kind not in PART_TYPES:
        raise WireError(f"the array {name!r} of type {array.dtype} cannot be sent; {sorted(PART_TYPES)} can be.")
    return kind  # type: ignore[return-value]


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


def decode_array(dtype: ArrayType, body: Body) -> np.ndarray:
    """The flat array in a body, in this machine's byte order."""
    kind = np.dtype(dtype)
    if len(body) % kind.itemsize:
        raise WireError(f"the body has {len(body)} bytes, which is no whole number of {kind.itemsize}-byte numbers.")
    array = np.frombuffer(body, kind)
    return array.astype(kind.newbyteorder("="), copy=False)


def decode_arrays(message: Task | Result, body: Body) -> Arrays:
    """The arrays in a body, by name. They are views of it, and keep it."""
    if message.parts is UNSET:
        return {MODEL: decode_array(message.dtype, body)}
    check_parts(message.parts, len(body))
    data = body.data if isinstance(body, np.ndarray) else memoryview(body)
    arrays, offset = {}, 0
    for part in message.parts:
        arrays[part.name] = decode_part(part, data[offset : offset + part.nbytes])
        offset += part.nbytes
    return arrays


def check_parts(parts: Sequence[Part], num_bytes: int) -> None:
    """Refuse parts that are impossible, or do not fill a body of so many bytes."""
    if len(parts) > MAX_PARTS:
        raise WireError(f"the message has {len(parts)} parts; at most {MAX_PARTS} are read.")
    if len({part.name for part in parts}) < len(parts):
        raise WireError("two parts of the message have the same name.")
    for part in parts:
        if len(part.name) > MAX_PART_NAME or len(part.shape) > 4 or any(not 0 <= n < 2**62 for n in part.shape):
            raise WireError(f"the message has a part {part.name[:20]!r} of shape {part.shape[:5]}, which cannot be.")
    announced = sum(part.nbytes for part in parts)
    if announced != num_bytes:
        raise WireError(f"the body has {num_bytes} bytes; its parts are said to have {announced}.")


def decode_part(part: Part, data: bytes | memoryview) -> np.ndarray:
    """One array, in this machine's byte order."""
    kind = np.dtype(part.dtype)
    try:
        array = np.frombuffer(data, kind).reshape(part.shape)
    except ValueError as error:
        raise WireError(f"the part {part.name!r} cannot be read ({error}).") from error
    if not array.flags.aligned:  # it begins wherever the part before it ends
        array = array.copy()
    return array.astype(kind.newbyteorder("="), copy=False)


def decode(frame: bytes, max_body_bytes: int) -> tuple[Message, bytes]:
    """A whole frame at once: its message and its body."""
    header, body = decode_prefix(frame[:PREFIX_BYTES], max_body_bytes)
    if len(frame) != PREFIX_BYTES + header + body:
        raise WireError(f"the message has {len(frame)} bytes; its prefix says {PREFIX_BYTES + header + body}.")
    return decode_header(frame[PREFIX_BYTES : PREFIX_BYTES + header]), frame[PREFIX_BYTES + header :]
