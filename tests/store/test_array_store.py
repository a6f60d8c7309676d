"""Large arrays: each stored once, in the file beside the run's own or in chunks, and never half."""

import io
import json
import os
import signal
import sqlite3
import time
from zlib import crc32

import numpy as np
import pytest

from asyncfed.core.errors import JournalError
from asyncfed.store import array_store
from asyncfed.store.array_file import ArrayFile
from asyncfed.store.array_store import LARGE
from asyncfed.store.journal import Journal
from asyncfed.store.page_sums import page_sum

HEADER = {"num_clients": 2, "verdict": "interrupted"}
SIZE = LARGE // 8 + 1000


def model(number, size=SIZE):
    return np.random.default_rng(number).normal(size=size)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


@pytest.fixture(params=["in files", "in tables"])
def journal(request, path):
    journal = Journal.create(path, HEADER)
    if request.param == "in tables":
        journal.erase_what_is_deleted()
    return journal


def read(path):
    journal = Journal.open(path)
    try:
        return journal.checkpoint()[1]
    finally:
        journal.close()


def test_a_checkpoint_comes_back_as_it_was(journal, path, monkeypatch):
    monkeypatch.setattr(array_store, "CHUNK", 10_000)
    arrays = {"params": model(0), "models": [model(1), model(2)], "few": np.arange(4), "table": model(3).reshape(2, -1)}
    journal.commit({"now": 0.0}, arrays)
    journal.close()
    loaded = read(path)
    assert loaded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert np.array_equal(np.stack(loaded[name]), np.stack(array))
        assert len(loaded[name]) == len(array)


def test_no_row_is_long(path):
    journal = Journal.create(path, HEADER)
    journal.commit({}, {"params": model(0, 3_000_000)}, in_one_file=True)
    rows = journal._connection.execute("SELECT max(length(bytes)), count(*) FROM chunks").fetchone()
    assert rows == (array_store.CHUNK, 6)
    assert journal._connection.execute("SELECT length(arrays) FROM checkpoints").fetchone()[0] < 1000


@pytest.mark.parametrize("private", [False, True])
def test_nothing_is_too_long_for_sqlite(path, private):
    """Its limit is a gigabyte, here 6 MB; with many small arrays or large messages a row used to be longer."""
    journal = Journal.create(path, HEADER)
    journal._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 6_000_000)
    if private:
        journal.erase_what_is_deleted()
    remembered = {f"kept/{client}": model(client, LARGE // 16) for client in range(60)}
    sent = {"change": model(100, 1_000_000)}
    journal.released.append((5, sent))
    journal.commit({"now": 1.0}, {"params": model(0), "table": model(1, 1_000_000), **remembered})
    journal.messages.append((6, sent))
    journal.payloads.append((7, sent["change"]))
    journal.commit(None, None)
    journal.close()
    journal = Journal.open(path, write=True)
    assert np.array_equal(journal.released_message(5)["change"], sent["change"])
    assert np.array_equal(journal.message(6)["change"], sent["change"])
    assert np.array_equal(journal.payload(7, np.dtype(float)), sent["change"])
    state, arrays = journal.checkpoint()
    assert arrays.keys() == {"params", "table", *remembered}
    assert all(np.array_equal(arrays[name], array) for name, array in remembered.items())
    journal.commit(state, arrays, in_one_file=True)  # messages that were released stay, others go
    assert journal.message(6) is None
    journal.close()
    assert np.array_equal(Journal.open(path).released_message(5)["change"], sent["change"])
    assert read(path).keys() == arrays.keys()
    assert os.listdir(path.parent) == [path.name]


def test_a_file_without_a_place_for_large_released_messages_is_read_and_continued(path):
    """As version 5 wrote it."""
    Journal.create(path, HEADER).close()
    with sqlite3.connect(path) as file:
        file.execute("DROP TABLE released_arrays")
        file.execute("PRAGMA user_version = 5")
    assert Journal.open(path).released_message(5) is None
    journal = Journal.open(path, write=True)
    journal.released.append((5, {"change": model(0)}))
    journal.commit({}, {"params": model(1)})
    assert np.array_equal(journal.released_message(5)["change"], model(0))


def test_what_did_not_change_is_not_written_again_and_what_is_old_is_dropped(journal, path):
    params, first, second = model(0), model(1), model(2)
    journal.commit({}, {"params": params, "models": [first, params]})
    numbers = dict(journal._connection.execute("SELECT id, sum FROM arrays"))
    assert len(numbers) == 2
    newer = model(3)
    journal.commit({}, {"params": newer, "models": [second, first, newer]})
    after = dict(journal._connection.execute("SELECT id, sum FROM arrays"))
    assert len(after) == 3
    assert len(numbers.items() & after.items()) == 1
    journal.close()
    again = Journal.open(path, write=True)
    state, arrays = again.checkpoint()
    again.commit(state, arrays)
    assert dict(again._connection.execute("SELECT id, sum FROM arrays")) == after
    assert np.array_equal(again.checkpoint()[1]["models"][1], first)


def test_an_array_that_may_have_changed_is_written_again(journal):
    table = model(0)
    journal.commit({}, {"params": model(1), "table": table})
    table[7] = 5.0
    journal.commit({}, {"params": model(1), "table": table})
    assert journal.checkpoint()[1]["table"][7] == 5.0


def test_the_files_beside_do_not_grow_for_ever_and_are_gone_when_the_run_is_over(path):
    journal = Journal.create(path, HEADER)
    beside, sizes = [path.with_name(f"run.sqlite-{name}") for name in ("arrays", "sent")], []
    for step in range(12):
        for ticket in range(3):
            journal.payloads.append((3 * step + ticket, model(step)))
            journal.commit(None, None)
        journal.commit({"step": step}, {"params": model(step)})
        sizes.append([file.stat().st_size for file in beside])
    assert sizes[3:] == 9 * [sizes[3]]
    assert path.stat().st_size < 8 * SIZE
    journal.commit({"step": 12}, {"params": model(12)}, in_one_file=True)
    assert not any(file.exists() for file in beside)
    assert np.array_equal(read(path)["params"], model(12))


def test_what_clients_sent_is_kept_until_a_checkpoint(path):
    journal = Journal.create(path, HEADER)
    journal.payloads.append((7, model(7)))
    journal.messages.append((8, {"change": model(8)}))
    journal.commit(None, None)
    journal.close()
    again = Journal.open(path, write=True)
    assert np.array_equal(again.payload(7, np.dtype(float)), model(7))
    assert np.array_equal(again.message(8)["change"], model(8))
    assert again.columns("payloads")["ticket"] == again.columns("messages")["ticket"] == []
    again.commit({}, {"params": np.zeros(3)})
    with pytest.raises(JournalError, match="ticket 7 is missing"):
        again.payload(7, np.dtype(float))


def test_an_update_that_waits_is_in_the_checkpoint_as_well(path):
    """Checkpoints wait for the disk, what is sent does not: it lies in another file."""
    journal, waiting = Journal.create(path, HEADER), model(7)
    journal.payloads.append((7, waiting))
    journal.commit(None, None)
    journal.commit({}, {"params": model(0), "trained": [waiting]})
    assert journal._connection.execute("SELECT file FROM arrays").fetchall() == [("arrays",), ("arrays",)]
    assert np.array_equal(journal.checkpoint()[1]["trained"][0], waiting)


def test_damage_and_a_missing_file_are_noticed(path):
    journal, beside = Journal.create(path, HEADER), path.with_name("run.sqlite-arrays")
    journal.commit({}, {"params": model(0)})
    journal.close()
    data = bytearray(beside.read_bytes())
    data[5000] ^= 1
    beside.write_bytes(data)
    with pytest.raises(JournalError, match="does not agree with its check sum"):
        read(path)
    beside.write_bytes(data[:100])
    with pytest.raises(JournalError, match="ends before an array"):
        read(path)
    beside.unlink()
    with pytest.raises(JournalError, match=r"run\.sqlite-arrays, which is not there"):
        read(path)


def test_a_commit_that_fails_leaves_what_was_there(path, monkeypatch):
    journal = Journal.create(path, HEADER)
    journal.commit({"step": 0}, {"params": model(0)})

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(JournalError, match=r"disk that holds .* is full.*resume"):
            journal.commit({"step": 1}, {"params": model(1)})
    assert np.array_equal(journal.checkpoint()[1]["params"], model(0))
    journal.commit({"step": 2}, {"params": model(2)})
    assert np.array_equal(journal.checkpoint()[1]["params"], model(2))


def test_places_are_taken_from_gaps(path):
    file = ArrayFile(path, "arrays")
    places = [file.write(memoryview(bytes(5000))) for _ in range(4)]
    assert places == [0, 8192, 16384, 24576]
    file.release(8192)
    assert file.write(memoryview(bytes(9000))) == 32768
    assert file.write(memoryview(bytes(8192))) == 8192
    file.delete()


def test_page_sums_see_changes_and_pages_that_change_places():
    data = np.random.default_rng(0).integers(0, 256, 20_001).astype(np.uint8)
    known = page_sum(data.data)
    for at in (0, 4095, 4096, 16_383, 20_000):
        changed = data.copy()
        changed[at] ^= 1
        assert page_sum(changed.data) != known
    swapped = data.copy()
    swapped[:4096], swapped[4096:8192] = data[4096:8192], data[:4096]
    assert page_sum(swapped.data) != known
    assert page_sum(data[:-1].data) != known
    assert page_sum(memoryview(b"")) == page_sum(memoryview(b""))


@pytest.mark.parametrize("in_tables", [False, True])
def test_a_writer_killed_at_any_moment_leaves_a_whole_checkpoint(path, monkeypatch, in_tables):
    """Every array of a checkpoint is filled with its number: whichever was written last, all must have the same."""
    monkeypatch.setattr(array_store, "CHUNK", 50_000)
    Journal.create(path, HEADER).close()
    chance, seen = np.random.default_rng(0), [0]
    for _ in range(12):
        child = os.fork()
        if child == 0:
            try:
                journal = Journal.open(path, write=True)
                if in_tables:
                    journal.erase_what_is_deleted()
                for step in range(seen[-1] + 1, 10**6):
                    arrays = {name: np.full(SIZE, float(step)) for name in ("params", "table")}
                    journal.commit({"step": step}, {**arrays, "models": [np.full(SIZE, float(step)) for _ in range(3)]})
            finally:
                os._exit(0)
        time.sleep(0.1 + 0.1 * chance.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        journal = Journal.open(path)
        found = journal.checkpoint()
        journal.close()
        if found is not None:
            state, arrays = found
            assert all(np.all(np.asarray(array) == state["step"]) for array in arrays.values())
            seen.append(state["step"])
    assert seen[-1] > 3
    assert seen == sorted(seen)


def test_a_file_whose_checkpoint_is_one_blob_is_read_and_continued(path):
    """As version 4 wrote it."""
    Journal.create(path, HEADER).close()
    blob = io.BytesIO()
    np.savez(blob, params=model(0), models=np.stack([model(1), model(2)]))
    with sqlite3.connect(path) as file:
        for table in ("arrays", "chunks", "checkpoint_arrays", "sent_arrays"):
            file.execute(f"DROP TABLE {table}")
        text = json.dumps({"step": 1, "arrays_crc": crc32(blob.getvalue())})
        row = (0, text, crc32(text.encode()), blob.getvalue())
        file.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?)", row)
        file.execute("PRAGMA user_version = 4")
    arrays = read(path)
    assert np.array_equal(arrays["models"][1], model(2))
    journal = Journal.open(path, write=True)
    state, arrays = journal.checkpoint()
    journal.commit(state, {**arrays, "models": list(arrays["models"])})
    journal.close()
    assert np.array_equal(read(path)["models"][1], model(2))
    assert np.array_equal(read(path)["params"], model(0))


def test_a_journal_that_is_continued_lends_no_place_that_its_file_refers_to(path):
    journal = Journal.create(path, HEADER)
    journal.commit({}, {"params": model(1)})
    source = journal.sent_memory
    sent = np.frombuffer(source.take(model(2).nbytes), model(2).dtype)
    sent[:] = model(2)
    journal.payloads.append((7, sent))
    journal.payload_sums[7] = page_sum(sent.data.cast("B"))
    journal.commit(None, None)
    journal.close()
    again = Journal.open(path, write=True)
    np.frombuffer(again.sent_memory.take(model(2).nbytes), np.uint8)[:] = 255
    assert np.array_equal(again.payload(7, model(2).dtype), model(2))
