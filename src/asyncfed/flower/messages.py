"""The content of Flower messages: a header as MessagePack, and arrays of numbers. No pickles, no data.

    RecordDict
      "asyncfed"  ConfigRecord {"header": bytes}        `Task` or `Result` of `live/wire.py`
      "model"     ArrayRecord  {"params": Array}        little-endian float32 or float64, one flat array
    or, if the header names parts, in place of "model"
      "parts"     ArrayRecord  {NAME: Array, ...}       little-endian, as the header says

Arrays travel as array records because Flower sends large ones in pieces, and the same one to many nodes once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from asyncfed.core.record import UNSET, Record, ValidationError, from_plain, pack, to_plain
from asyncfed.live.wire import (
    MAX_HEADER_BYTES,
    MODEL,
    Arrays,
    Result,
    Task,
    WireError,
    check_parts,
    decode_array,
    decode_header,
    decode_part,
    describe_parts,
    to_bytes,
)

HEADER, PARTS = "asyncfed", "parts"
PLAIN_BYTES = "asyncfed.little_endian"
T = TypeVar("T", Task, Result)


class Introduction(Record):
    """A node's answer to a query: which client's data it holds, how many rows, and the size of its model."""

    client: int
    num_examples: int
    num_params: int
    dtype: str
    asyncfed: str


def pack_message(header: Task | Result, arrays: Mapping[str, np.ndarray]) -> RecordDict:
    """The content of a message: a header and its arrays."""
    packed = pack_arrays(arrays)
    if header.parts is UNSET:
        body = {MODEL: ArrayRecord({"params": packed[MODEL]})}
    else:
        body = {PARTS: ArrayRecord(packed)}
    return RecordDict({HEADER: ConfigRecord({"header": pack(header)}), **body})


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> dict[str, Array]:
    """Numbers as Flower carries them."""
    return {
        part.name: Array(dtype=part.dtype, shape=part.shape, stype=PLAIN_BYTES, data=bytes(to_bytes(array)))
        for part, array in zip(describe_parts(arrays), arrays.values(), strict=True)
    }


def unpack_message(content: RecordDict, kind: type[T], max_bytes: int) -> tuple[T, Arrays]:
    """The inverse of `pack_message` for bytes from anywhere: whatever is wrong with them is a `WireError`."""
    header = _config_record(content).get("header")
    if not isinstance(header, bytes):
        raise WireError("the message lacks its header.")
    if len(header) > MAX_HEADER_BYTES:
        raise WireError(f"the header has {len(header)} bytes; at most {MAX_HEADER_BYTES} are read.")
    message = decode_header(header)
    if not isinstance(message, kind):
        raise WireError(f"the message is a {type(message).__name__}; a {kind.__name__} is due.")
    record = _array_record(content, MODEL if message.parts is UNSET else PARTS)
    length = sum(len(array.data) for array in record.values())
    if length > max_bytes:
        raise WireError(f"the message has {length} bytes of numbers; at most {max_bytes} are read.")
    if message.parts is UNSET:
        array = _plain_array(record, "params", message.dtype)
        return message, {MODEL: decode_array(message.dtype, array.data)}
    check_parts(message.parts, length)
    arrays = {part.name: decode_part(part, _plain_array(record, part.name, part.dtype).data) for part in message.parts}
    return message, arrays


def _plain_array(record: ArrayRecord, name: str, dtype: str) -> Array:
    array = record.get(name)
    if not isinstance(array, Array):
        raise WireError(f"the message lacks its {name[:20]!r}.")
    if array.stype != PLAIN_BYTES or array.dtype != dtype:
        raise WireError(f"{name[:20]!r} is {array.stype[:40]!r} of {array.dtype[:20]!r}; {dtype!r} was announced.")
    return array


def pack_introduction(introduction: Introduction) -> RecordDict:
    """The content of a node's introduction."""
    return RecordDict({HEADER: ConfigRecord(to_plain(introduction))})


def unpack_introduction(content: RecordDict) -> Introduction:
    """The inverse of `pack_introduction` for bytes from anywhere: whatever is wrong with them is a `WireError`."""
    try:
        return from_plain(dict(_config_record(content)), Introduction)
    except ValidationError as error:
        raise WireError(f"the introduction is not valid ({error}).") from error


def _config_record(content: RecordDict) -> ConfigRecord:
    record = content.get(HEADER)
    if not isinstance(record, ConfigRecord):
        raise WireError(f"the message has no ConfigRecord called {HEADER!r}.")
    return record


def _array_record(content: RecordDict, name: str) -> ArrayRecord:
    record = content.get(name)
    if not isinstance(record, ArrayRecord):
        raise WireError(f"the message has no ArrayRecord called {name!r}.")
    return record
