"""Records go to a node's worker and back as they are; a connection that breaks off is noticed."""

import socket

import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.record import ValidationError, pack
from asyncfed.flower.worker_messages import (
    WorkerReply,
    WorkerRequest,
    from_plain_records,
    receive_record,
    send_record,
    to_plain_records,
)

NAMES = st.text(max_size=8)
WHOLE = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(allow_nan=False)
SINGLE = st.one_of(WHOLE, REAL, st.booleans(), st.text(max_size=8), st.binary(max_size=8))
CONFIGS = st.dictionaries(NAMES, st.one_of(SINGLE, st.lists(WHOLE, max_size=3), st.lists(REAL, max_size=3)), max_size=3)
ARRAYS = st.builds(
    lambda data: Array(dtype="<u1", shape=(len(data),), stype="asyncfed.little_endian", data=data),
    st.binary(max_size=64),
)
RECORDS = st.one_of(
    CONFIGS.map(ConfigRecord),
    st.dictionaries(NAMES, st.one_of(WHOLE, REAL), max_size=3).map(MetricRecord),
    st.dictionaries(NAMES, ARRAYS, max_size=3).map(ArrayRecord),
)


@pytest.fixture(scope="module")
def pair():
    left, right = socket.socketpair()
    yield left, right
    left.close()
    right.close()


@given(content=st.dictionaries(NAMES, RECORDS, max_size=3), kind=st.sampled_from(["query", "train"]))
def test_records_arrive_as_they_were_sent(pair, content, kind):
    sent = RecordDict(content)
    send_record(pair[0], WorkerRequest(kind, to_plain_records(sent), {"partition-id": 1}, to_plain_records(sent)))
    request = receive_record(pair[1], WorkerRequest)
    received = from_plain_records(request.content)
    assert (request.kind, request.node) == (kind, {"partition-id": 1})
    assert list(received) == list(sent)
    assert received == sent == from_plain_records(request.state)
    assert [type(record) for record in received.values()] == [type(record) for record in sent.values()]


def test_a_connection_that_breaks_off_and_bytes_that_are_no_record_are_noticed():
    left, right = socket.socketpair()
    with right:
        left.sendall((100).to_bytes(8, "little") + b"a part")
        left.close()
        with pytest.raises(ConnectionResetError):
            receive_record(right, WorkerReply)
    left, right = socket.socketpair()
    with left, right:
        junk = pack([1, 2, 3])
        left.sendall(len(junk).to_bytes(8, "little") + junk)
        with pytest.raises(ValidationError):
            receive_record(right, WorkerReply)
