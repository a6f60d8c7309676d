"""Places in the file beside a run's own, written to or used as memory."""

import errno
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import JournalError
from asyncfed.store import array_file
from asyncfed.store.array_file import ALIGNMENT, MAPPED_AT_ONCE, ArrayFile

LENGTH = 3 * ALIGNMENT + 8

pytestmark = pytest.mark.skipif(getattr(os, "posix_fallocate", None) is None, reason="the system cannot reserve room")


@pytest.fixture
def file(tmp_path):
    file = ArrayFile(tmp_path / "run.sqlite", "sent")
    yield file
    file.close()


def filled(file, value):
    memory = file.take(LENGTH)
    np.frombuffer(memory, np.uint8)[:] = value
    return memory


def read(file, place, length=LENGTH):
    array = np.empty(length, np.uint8)
    file.read(place, array)
    return array


def test_what_lies_in_the_file_is_not_written_again(file, monkeypatch):
    memory = filled(file, 7)
    monkeypatch.setattr(os, "pwrite", lambda *how: pytest.fail("it was written"))
    place = file.write(memory)
    assert set(read(file, place)) == {7}


def test_a_place_is_free_when_neither_row_nor_array_refers_to_it(file):
    memory = filled(file, 7)
    place = file.write(memory)
    file.release(place)  # a checkpoint holds its effect, and an array still uses it
    others = [filled(file, 9) for _ in range(2 * MAPPED_AT_ONCE)]
    assert set(read(file, place)) == {7}
    file.give_back(memory)
    assert file.write(filled(file, 1)) == place
    kept = file.write(others[0])
    file.give_back(others[0])  # the array is gone, and a row still refers to its place
    more = [filled(file, 3) for _ in range(2 * MAPPED_AT_ONCE)]
    assert len(more) == 2 * MAPPED_AT_ONCE
    assert set(read(file, kept)) == {9}


def test_what_is_written_does_not_get_into_places_that_are_memory(file):
    first = file.write(memoryview(bytes([1]) * LENGTH))
    memory = filled(file, 7)
    places = [file.write(memoryview(bytes([value]) * length)) for value, length in ((2, LENGTH), (3, 100), (4, 10**6))]
    lent = file.write(memory)
    assert set(read(file, lent)) == {7}
    for place, value in zip([first, *places], [1, 2, 3, 4], strict=True):
        assert set(read(file, place, 100)) == {value}


def test_after_an_undone_transaction_the_tables_know_what_is_used(file):
    memory = filled(file, 7)
    file.write(memory)
    file.set_used([])
    assert set(np.frombuffer(filled(file, 1), np.uint8)) == {1}
    assert set(np.frombuffer(memory, np.uint8)) == {7}


STEPS = st.tuples(
    st.sampled_from(["take", "keep", "write", "release", "give back", "undo", "commit"]),
    st.integers(0, 30),
    st.sampled_from([100, ALIGNMENT, LENGTH, LENGTH + 1]),
)


@given(st.lists(STEPS, max_size=60))
def test_nothing_that_a_row_or_an_array_refers_to_ever_changes(steps):
    with TemporaryDirectory() as folder:
        file = ArrayFile(Path(folder) / "run.sqlite", "sent")
        arrays, rows, committed = [], {}, {}
        for value, (step, which, length) in enumerate(steps, 1):
            if step == "take":
                arrays.append((file.take(length), value))
                arrays[-1][0][:] = bytes([value]) * length
            elif step == "keep" and arrays:
                memory, of_array = arrays[which % len(arrays)]
                rows[file.write(memory)] = (of_array, len(memory))
            elif step == "write":
                place = file.write(memoryview(bytes([value]) * length))
                assert place not in rows
                rows[place] = (value, length)
            elif step == "release" and committed:  # as a checkpoint does, which is committed with it
                place = sorted(committed)[which % len(committed)]
                file.release(place)
                del committed[place]
                rows.pop(place)
                committed = dict(rows)
            elif step == "give back" and arrays:
                file.give_back(arrays.pop(which % len(arrays))[0])
            elif step == "undo":
                rows = dict(committed)
                file.set_used((place, length) for place, (_, length) in rows.items())
            elif step == "commit":
                committed = dict(rows)
            assert all(set(memory) == {of_array} for memory, of_array in arrays)
            for place, (of_row, length_of_row) in rows.items():
                assert set(read(file, place, length_of_row)) == {of_row}
        file.close()


def test_arrays_outlive_the_file(file):
    memory = filled(file, 7)
    file.write(memory)
    file.delete()
    assert not file.path.exists()
    file.give_back(memory)
    assert set(np.frombuffer(memory, np.uint8)) == {7}
    assert set(read(file, file.write(filled(file, 2)))) == {2}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EOPNOTSUPP])
def test_where_not_so_much_room_is_given_at_once_arrays_are_written_one_by_one(file, monkeypatch, number):
    first = file.write(memoryview(bytes([1]) * LENGTH))

    def give_some(descriptor, begin, length):
        os.ftruncate(descriptor, begin + length // 2)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", give_some)
    assert file.take(LENGTH) is None
    assert file.path.stat().st_size == LENGTH
    second = file.write(memoryview(bytes([2]) * LENGTH))
    assert [set(read(file, place)) for place in (first, second)] == [{1}, {2}]


def test_where_files_cannot_be_memory_arrays_are_written(file, monkeypatch):
    def refuse(*how, **more):
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    monkeypatch.setattr(array_file.mmap, "mmap", refuse)
    assert file.take(LENGTH) is None
    assert file.take(LENGTH) is None
    assert set(read(file, file.write(memoryview(bytes([2]) * LENGTH)))) == {2}


def test_a_full_disk_is_an_error_that_says_what_to_do(file, monkeypatch):
    def full(*how):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(JournalError, match=r"is full\. Everything up to the last commit is safe"):
        file.write(memoryview(bytes(LENGTH)))


def test_without_room_that_can_be_reserved_there_is_no_such_memory(file, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    assert file.take(LENGTH) is None
