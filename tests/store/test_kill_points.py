"""Files of runs whose writer is killed, at each moment that makes a difference: whole, and in nobody's way."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from tests.store.disk_states import read_folder, states_on_disk, write_folder

from asyncfed.core.errors import JournalError
from asyncfed.store import array_store, checkpoint_rows
from asyncfed.store.journal import Journal

OLD, NEW, AFTER = ({"num_clients": 2, "verdict": "interrupted", "asyncfed": name} for name in ("old", "new", "after"))


@pytest.fixture
def path(tmp_path):
    """In memory, where there is such a folder: these tests would wait for the disk a thousand times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder) / "run.sqlite"


@pytest.fixture
def low_limits(monkeypatch):
    """Arrays count as large, and as too long for a row, that would not otherwise."""
    monkeypatch.setattr(array_store, "LARGE", 1000)
    monkeypatch.setattr(array_store, "CHUNK", 2500)
    monkeypatch.setattr(checkpoint_rows, "LONGEST_IN_ROW", 2000)


def filled(step, size=700):
    """Arrays of all sorts, each filled with the number of its checkpoint."""
    arrays = {"params": np.full(size, float(step)), "models": [np.full(size, float(step)) for _ in range(2)]}
    return arrays | {f"kept/{client}": np.full(50, float(step)) for client in range(8)}


def write_checkpoint(path, step, private, in_one_file=False):
    journal = Journal.open(path, write=True)
    if private:
        journal.erase_what_is_deleted()
    journal.commit({"step": step}, filled(step), in_one_file=in_one_file)
    return journal


def leave_killed_run(path, private=False):
    """A run of which one checkpoint was written before its process was killed."""
    Journal.create(path, OLD).close()
    journal = write_checkpoint(path, 1, private)
    left = read_folder(path.parent)
    journal.close()
    write_folder(path.parent, left)


def last_step(path):
    """The step of the last checkpoint, all of whose arrays must have it; None if there is none."""
    journal = Journal.open(path)
    found = journal.checkpoint()
    journal.close()
    if found is None:
        return None
    state, arrays = found
    assert all(np.all(np.asarray(array) == state["step"]) for array in arrays.values())
    assert arrays.keys() == filled(1).keys()
    return state["step"]


def read_header(path):
    journal = Journal.open(path)
    try:
        return journal.header()
    finally:
        journal.close()


def check_can_be_made_anew(path):
    if not path.exists():
        with pytest.raises(JournalError, match="There is no run"):
            Journal.open(path, write=True)
    Journal.create(path, AFTER, replace=path.exists()).close()
    assert read_header(path) == AFTER
    assert last_step(path) is None
    assert os.listdir(path.parent) == [path.name]


def test_a_process_killed_while_it_makes_a_file_leaves_a_run_or_none(path):
    states = states_on_disk(path.parent, lambda: Journal.create(path, NEW))
    assert len(states) > 20
    for state in states:
        write_folder(path.parent, state)
        if path.exists():
            Journal.open(path, write=True).close()
            assert read_header(path) == NEW
            assert os.listdir(path.parent) == [path.name]  # who continues it clears up
        check_can_be_made_anew(path)
    assert [path.name in state for state in (states[0], states[-1])] == [False, True]


def test_a_process_killed_while_it_replaces_a_run_leaves_the_old_the_new_or_none(path, low_limits):
    leave_killed_run(path)
    assert {"run.sqlite-wal", "run.sqlite-arrays"} < set(os.listdir(path.parent))
    seen = set()
    for state in states_on_disk(path.parent, lambda: Journal.create(path, NEW, replace=True)):
        write_folder(path.parent, state)
        header = read_header(path) if path.exists() else {"asyncfed": None}
        seen.add(header["asyncfed"])
        assert header["asyncfed"] is None or last_step(path) == (1 if header == OLD else None)
        write_folder(path.parent, state)
        check_can_be_made_anew(path)
    assert seen == {"old", "new", None}


@pytest.mark.parametrize("in_one_file", [False, True])
@pytest.mark.parametrize("private", [False, True])
def test_a_process_killed_while_it_writes_a_checkpoint_leaves_one_that_is_whole(path, low_limits, in_one_file, private):
    leave_killed_run(path, private)
    seen = set()
    for state in states_on_disk(path.parent, lambda: write_checkpoint(path, 2, private, in_one_file).close()):
        write_folder(path.parent, state)
        seen.add(last_step(path))
        write_folder(path.parent, state)
        write_checkpoint(path, 3, private, in_one_file=True).close()
        assert last_step(path) == 3
        assert os.listdir(path.parent) == [path.name]
    assert seen == {1, 2}


def test_a_file_that_is_deleted_by_hand_takes_what_lies_beside_it_along(path, low_limits):
    """SQLite would take the log of the killed run for that of the new one, and the new file would hold the old run."""
    leave_killed_run(path)
    path.unlink()
    check_can_be_made_anew(path)
