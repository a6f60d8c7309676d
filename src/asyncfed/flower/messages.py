"""The content of Flower messages: a header as MessagePack, and the numbers of the model. No pickles, no data.

    RecordDict
      "asyncfed"  ConfigRecord {"header": bytes}        `Task` or `Result` of `live/wire.py`
      "model"     ArrayRecord  {"params": Array}        little-endian float32 or float64, one flat array

The model travels as an array record because Flower sends large ones in pieces, and the same one to many nodes once.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from asyncfed.core.record import Record, ValidationError, from_plain, pack, to_plain
from asyncfed.live.wire import MAX_HEADER_BYTES, Result, Task, WireError, decode_array, decode_header, dtype_name

HEADER, MODEL = "asyncfed", "model"
PLAIN_BYTES = "asyncfed.little_endian"
T = TypeVar("T", Task, Result)


class Introduction(Record):
    """A node's answer to a query: which client's data it holds, how many rows, and the size of its model."""

    client: int
    num_examples: int
    num_params: int
    dtype: str
    asyncfed: str


def pack_model(header: Task | Result, params: np.ndarray) -> RecordDict:
    """The content of a message that carries a model."""
    body = np.ascontiguousarray(params, params.dtype.newbyteorder("<")).tobytes()
    array = Array(dtype=dtype_name(params.dtype), shape=params.shape, stype=PLAIN_BYTES, data=body)
    return RecordDict({HEADER: ConfigRecord({"header": pack(header)}), MODEL: ArrayRecord({"params": array})})


def unpack_model(content: RecordDict, kind: type[T], max_bytes: int) -> tuple[T, np.ndarray]:
    """The inverse of `pack_model` for bytes from anywhere: whatever is wrong with them is a `WireError`."""
    header, array = _config_record(content).get("header"), _array_record(content).get("params")
    if not isinstance(header, bytes) or not isinstance(array, Array):
        raise WireError("the message lacks its header or its model.")
    if len(header) > MAX_HEADER_BYTES:
        raise WireError(f"the header has {len(header)} bytes; at most {MAX_HEADER_BYTES} are read.")
    if len(array.data) > max_bytes:
        raise WireError(f"the model has {len(array.data)} bytes; at most {max_bytes} are read.")
    message = decode_header(header)
    if not isinstance(message, kind):
        raise WireError(f"the message is a {type(message).__name__}; a {kind.__name__} is due.")
    if array.stype != PLAIN_BYTES or array.dtype != message.dtype:
        raise WireError(f"the model is {array.stype[:40]!r} of {array.dtype[:20]!r}; {message.dtype!r} was announced.")
    return message, decode_array(message.dtype, array.data)


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


def _array_record(content: RecordDict) -> ArrayRecord:
    record = content.get(MODEL)
    if not isinstance(record, ArrayRecord):
        raise WireError(f"the message has no ArrayRecord called {MODEL!r}.")
    return record
