"""What TensorBoard reads."""

import pytest

import asyncfed as af


@pytest.fixture
def run(small, tmp_path):
    return af.run(small(), out=tmp_path / "run.sqlite")


def test_tensorboard_reads_what_was_written(cli, run, tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event

    folder = tmp_path / "board"
    assert cli("export", run.path, folder, "--to", "tensorboard").code == 0
    (file,) = folder.iterdir()
    values = {}
    for packed in records_in(file.read_bytes()):
        event = Event.FromString(packed)
        for value in event.summary.value:
            values.setdefault(value.tag, []).append((event.step, value.simple_value))
    assert [step for step, _ in values["evaluation/objective"]] == run.evaluations["updates"].tolist()
    assert values["evaluation/objective"][-1][1] == pytest.approx(run.evaluations["objective"][-1], rel=1e-6)


def records_in(data):
    """TensorBoard's files are records: length (8 bytes), its check sum (4), the bytes, their check sum (4)."""
    place = 0
    while place < len(data):
        length = int.from_bytes(data[place : place + 8], "little")
        yield data[place + 12 : place + 12 + length]
        place += 16 + length
