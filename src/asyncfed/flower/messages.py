"""What is in a Flower message: a header of ours as MessagePack, and the numbers of the model. No pickles, no data.

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
from asyncfed.live.wire import MOST_HEADER_BYTES, Result, Task, WireError, array_in, dtype_name, message_in

HEADER, MODEL = "asyncfed", "model"
PLAIN_BYTES = "asyncfed.little_endian"
T = TypeVar("T", Task, Result)


class Introduction(Record):
    """What a node says when it is asked who it is: which client's data it holds, how many rows, and of what model."""

    client: int
    num_examples: int
    num_params: int
    dtype: str
    asyncfed: str


def pack_model(header: Task | Result, params: np.ndarray) -> RecordDict:
    body = np.ascontiguousarray(params, params.dtype.newbyteorder("<")).tobytes()
    array = Array(dtype=dtype_name(params.dtype), shape=params.shape, stype=PLAIN_BYTES, data=body)
    return RecordDict({HEADER: ConfigRecord({"header": pack(header)}), MODEL: ArrayRecord({"params": array})})


def unpack_model(content: RecordDict, kind: type[T], most_bytes: int) -> tuple[T, np.ndarray]:
    """The inverse of `pack_model` for bytes from anywhere: whatever is wrong with them is a `WireError`."""
    header, array = _settings_in(content).get("header"), _arrays_in(content).get("params")
    if not isinstance(header, bytes) or not isinstance(array, Array):
        raise WireError("the message lacks its header or its model.")
    if len(header) > MOST_HEADER_BYTES:
        raise WireError(f"the header has {len(header)} bytes; at most {MOST_HEADER_BYTES} are read.")
    if len(array.data) > most_bytes:
        raise WireError(f"the model has {len(array.data)} bytes; at most {most_bytes} are read.")
    message = message_in(header)
    if not isinstance(message, kind):
        raise WireError(f"the message is a {type(message).__name__}; a {kind.__name__} is due.")
    if array.stype != PLAIN_BYTES or array.dtype != message.dtype:
        raise WireError(f"the model is {array.stype[:40]!r} of {array.dtype[:20]!r}; {message.dtype!r} was announced.")
    return message, array_in(message.dtype, array.data)


def pack_introduction(introduction: Introduction) -> RecordDict:
    return RecordDict({HEADER: ConfigRecord(to_plain(introduction))})


def unpack_introduction(content: RecordDict) -> Introduction:
    try:
        return from_plain(dict(_settings_in(content)), Introduction)
    except ValidationError as error:
        raise WireError(f"the introduction is not one ({error}).") from error


def _settings_in(content: RecordDict) -> ConfigRecord:
    record = content.get(HEADER)
    if not isinstance(record, ConfigRecord):
        raise WireError(f"the message has no ConfigRecord called {HEADER!r}.")
    return record


def _arrays_in(content: RecordDict) -> ArrayRecord:
    record = content.get(MODEL)
    if not isinstance(record, ArrayRecord):
        raise WireError(f"the message has no ArrayRecord called {MODEL!r}.")
    return record
