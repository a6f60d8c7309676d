"""The content of Flower messages. What is refused of it is tested with the driver, from end to end."""

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict

from asyncfed.core.types import Work
from asyncfed.flower.messages import Introduction, pack_introduction, pack_message, unpack_introduction, unpack_message
from asyncfed.live.wire import Result, Task, WireError, describe_parts

TASK = Task("secret", 7, 3, Work(epochs=2), 2**64 - 1, "<f8")


TWO = {"model": np.arange(11.0), "correction": np.arange(11, dtype=np.float32)}
SPARSE = {"indices": np.array([1, 5], np.uint32), "values": np.array([0.5, -1.0]), "norm": np.array(3.5)}
LIMIT = 200


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        (TASK, {"model": np.arange(11.0)}),
        (Result("s", 7, 0.5, 8, "<f4", {"loss": 0.25}), {"model": np.arange(11, dtype=np.float32)}),
        (Task("s", 7, 3, Work(), 1, "<f8", -1, 5, describe_parts(TWO)), TWO),
        (Task("s", 7, 3, Work(start="own"), 1, "<f8", 4, parts=()), {}),
        (Result("s", 7, 0.5, 8, "<f8", None, -1, describe_parts(SPARSE)), SPARSE),
    ],
)
def test_what_is_packed_is_what_is_unpacked(header, arrays):
    unpacked, found = unpack_message(pack_message(header, arrays), type(header), LIMIT)
    assert unpacked == header
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_parts_must_be_those_that_the_header_names():
    header = Result("s", 7, 0.5, 8, "<f8", None, -1, describe_parts(SPARSE))
    other = {**SPARSE, "values": SPARSE["values"].astype(np.float32)}
    lies = {
        "the body has 24 bytes; its parts are said to have 32": {**SPARSE, "norm": np.zeros(0)},
        "lacks its 'norm'": {**{k: v for k, v in SPARSE.items() if k != "norm"}, "other": SPARSE["norm"]},
        "'<f4'; '<f8' was announced": {**other, "more": np.zeros(1)},
        "at most 200 are read": {"indices": np.zeros(100)},
    }
    for words, arrays in lies.items():
        with pytest.raises(WireError, match=words):
            unpack_message(pack_message(header, arrays), Result, LIMIT)
    with pytest.raises(WireError, match="no ArrayRecord called 'parts'"):
        unpack_message(RecordDict({"asyncfed": pack_message(header, SPARSE)["asyncfed"]}), Result, LIMIT)


def test_the_header_is_that_of_the_wire_format():
    """A node of an earlier version reads it: the names and the order of its fields are part of the format."""
    content = pack_message(Result("s", 7, 0.5, 8, "<f8"), {"model": np.zeros(1)})
    assert content["asyncfed"]["header"] == (
        b"\x87\xa4kind\xa6result\xa7session\xa1s\xa6ticket\x07\xa8duration\xcb?\xe0\x00\x00\x00\x00\x00\x00"
        b"\xacnum_examples\x08\xa5dtype\xa3<f8\xa7metrics\xc0"
    )
    assert content["model"]["params"].stype == "asyncfed.little_endian"


def test_a_task_is_no_result():
    with pytest.raises(WireError, match="the message is a Task; a Result is due"):
        unpack_message(pack_message(TASK, {"model": np.zeros(2)}), Result, 1000)


def test_introductions_are_checked():
    introduction = Introduction(1, 16, 11, "<f8", "1.0")
    assert unpack_introduction(pack_introduction(introduction)) == introduction
    with pytest.raises(WireError, match="the introduction is not valid"):
        unpack_introduction(RecordDict({"asyncfed": ConfigRecord({"client": 1})}))
    with pytest.raises(WireError, match="no ConfigRecord called 'asyncfed'"):
        unpack_introduction(RecordDict())
