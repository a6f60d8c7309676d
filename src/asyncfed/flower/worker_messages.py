"""What a ClientApp and its node's worker send each other over a local socket: MessagePack, no pickles.

worker      b"+"                  it has taken the connection, and will answer or die
ClientApp   length (8 bytes, little-endian), WorkerRequest
worker      length, WorkerReply
"""

from __future__ import annotations

import socket
from typing import Any, TypeVar

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from asyncfed.core.record import Record, pack, unpack

TAKEN = b"+"
LENGTH_BYTES = 8
CHUNK = 1 << 20
T = TypeVar("T")


class PlainArray(Record):
    """An array of an ArrayRecord."""

    dtype: str
    shape: tuple[int, ...]
    stype: str
    data: bytes


class PlainRecord(Record):
    """A record of a RecordDict: the one of the three that it is, the others empty."""

    kind: str
    values: dict[str, Any]
    arrays: dict[str, PlainArray]


class WorkerRequest(Record):
    """A message of Flower's, with the node's settings and what it remembers."""

    kind: str
    content: dict[str, PlainRecord]
    node: dict[str, Any]
    state: dict[str, PlainRecord]


class WorkerReply(Record):
    """The content of the reply and what the node remembers now, or the class of an exception."""

    content: dict[str, PlainRecord]
    state: dict[str, PlainRecord]
    error: str | None = None


def to_plain_records(records: RecordDict) -> dict[str, PlainRecord]:
    """The records of a message, to be packed."""
    plain = {}
    for name, record in records.items():
        if isinstance(record, ArrayRecord):
            arrays = {key: PlainArray(a.dtype, tuple(a.shape), a.stype, a.data) for key, a in record.items()}
            plain[name] = PlainRecord("arrays", {}, arrays)
        else:
            plain[name] = PlainRecord("config" if isinstance(record, ConfigRecord) else "metrics", dict(record), {})
    return plain


def from_plain_records(plain: dict[str, PlainRecord]) -> RecordDict:
    """The inverse of `to_plain_records`."""
    records = RecordDict()
    for name, record in plain.items():
        if record.kind == "arrays":
            arrays = {
                key: Array(dtype=array.dtype, shape=array.shape, stype=array.stype, data=array.data)
                for key, array in record.arrays.items()
            }
            records[name] = ArrayRecord(arrays)
        else:
            records[name] = ConfigRecord(record.values) if record.kind == "config" else MetricRecord(record.values)
    return records


def send_record(connection: socket.socket, record: Record) -> None:
    """Send it whole."""
    packed = pack(record)
    connection.sendall(len(packed).to_bytes(LENGTH_BYTES, "little"))
    connection.sendall(packed)


def receive_record(connection: socket.socket, kind: type[T]) -> T:
    """Receive it whole. Raises `ConnectionError` if the other side has gone before."""
    length = int.from_bytes(_receive(connection, LENGTH_BYTES), "little")
    return unpack(_receive(connection, length), kind)


def _receive(connection: socket.socket, length: int) -> bytearray:
    received = bytearray()
    while len(received) < length:
        part = connection.recv(min(CHUNK, length - len(received)))
        if not part:
            raise ConnectionResetError("the other side has closed the connection")
        received += part
    return received
