"""The content of Flower messages. What is refused of it is tested with the driver, from end to end."""

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict

from asyncfed.core.types import Work
from asyncfed.flower.messages import Introduction, pack_introduction, pack_model, unpack_introduction, unpack_model
from asyncfed.live.wire import Result, Task, WireError

TASK = Task("secret", 7, 3, Work(epochs=2), 2**64 - 1, "<f8")


@pytest.mark.parametrize(
    ("header", "array"),
    [(TASK, np.arange(11.0)), (Result("s", 7, 0.5, 8, "<f4", {"loss": 0.25}), np.arange(11, dtype=np.float32))],
)
def test_what_is_packed_is_what_is_unpacked(header, array):
    unpacked, params = unpack_model(pack_model(header, array), type(header), 1000)
    assert unpacked == header
    assert params.dtype == array.dtype
    assert params.tobytes() == array.tobytes()


def test_the_header_is_that_of_the_wire_format():
    """A node of an earlier version reads it: the names and the order of its fields are part of the format."""
    content = pack_model(Result("s", 7, 0.5, 8, "<f8"), np.zeros(1))
    assert content["asyncfed"]["header"] == (
        b"\x87\xa4kind\xa6result\xa7session\xa1s\xa6ticket\x07\xa8duration\xcb?\xe0\x00\x00\x00\x00\x00\x00"
        b"\xacnum_examples\x08\xa5dtype\xa3<f8\xa7metrics\xc0"
    )
    assert content["model"]["params"].stype == "asyncfed.little_endian"


def test_a_task_is_no_result():
    with pytest.raises(WireError, match="the message is a Task; a Result is due"):
        unpack_model(pack_model(TASK, np.zeros(2)), Result, 1000)


def test_introductions_are_checked():
    introduction = Introduction(1, 16, 11, "<f8", "1.0")
    assert unpack_introduction(pack_introduction(introduction)) == introduction
    with pytest.raises(WireError, match="the introduction is not valid"):
        unpack_introduction(RecordDict({"asyncfed": ConfigRecord({"client": 1})}))
    with pytest.raises(WireError, match="no ConfigRecord called 'asyncfed'"):
        unpack_introduction(RecordDict())
