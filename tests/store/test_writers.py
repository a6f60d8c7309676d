"""Who may write to a run, who may read it meanwhile, and what is said when its file or its disk is gone."""

import errno
import os
import resource
import shutil

import numpy as np
import pytest

from asyncfed.core.errors import JournalError
from asyncfed.store import process_lock
from asyncfed.store.array_store import LARGE
from asyncfed.store.files import check_free, find_writer
from asyncfed.store.journal import Journal

HEADER = {"num_clients": 2, "verdict": "interrupted"}
ARRAYS = {"params": np.zeros(3)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


def add(journal, count, text=None):
    for _ in range(count):
        detail = None if text is None else journal.intern(text)
        journal.events.append((journal.next_seq, 0.5, 0, 1, 2, 3, None, None, detail))
        journal.next_seq += 1


# ---- one writer ------------------------------------------------------------------------------------------------


def test_a_run_that_is_being_written_is_neither_continued_nor_replaced(path):
    writer = Journal.create(path, HEADER)
    add(writer, 2)
    writer.commit({"now": 1.0}, ARRAYS)
    refused = {
        "resume": lambda: Journal.open(path, write=True),
        "run": lambda: Journal.create(path, HEADER),
        "run --force": lambda: Journal.create(path, HEADER, replace=True),
        "before anything is read": lambda: check_free(path, True),
    }
    for attempt in refused.values():
        with pytest.raises(JournalError, match=rf"is being written by process {os.getpid()} on .* since .*Nothing was"):
            attempt()
    assert find_writer(path) is not None
    writer.commit({"now": 2.0}, ARRAYS)
    writer.close()
    assert find_writer(path) is None
    assert os.listdir(path.parent) == [path.name]
    Journal.open(path, write=True).close()


def test_who_has_finished_writing_can_be_followed_by_another_and_still_read(path):
    """After Ctrl-C in a notebook, the run that was returned is open, and is resumed."""
    first = Journal.create(path, HEADER)
    add(first, 2)
    first.commit({"now": 1.0}, ARRAYS)
    first.finish_writing()
    second = Journal.open(path, write=True)
    second.rewind(2)
    add(second, 3)
    second.commit({"now": 2.0}, ARRAYS)
    assert len(list(first.event_rows())) == 5
    with pytest.raises(JournalError, match=r"its writing was finished\. Nothing was written"):
        first.commit({"now": 3.0}, ARRAYS)
    with pytest.raises(JournalError, match="opened to be read"):
        Journal.open(path).commit({"now": 3.0}, ARRAYS)
    second.close()


def test_an_attempt_that_fails_gives_the_lock_back(path):
    path.write_text("this is no run at all, and long enough to be no database")
    for attempt in (lambda: Journal.open(path, write=True), lambda: Journal.create(path, HEADER, replace=True)):
        with pytest.raises(JournalError, match="not an AsyncFed run"):
            attempt()
        assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOLCK, "No locks available"), "file system that cannot lock files.*local disk"),
        (OSError(errno.ENOSPC, "No space left on device"), "is full. Nothing was changed; make room"),
        (PermissionError(errno.EACCES, "Permission denied"), "cannot be written .Permission denied.. Check the folder"),
    ],
)
def test_a_lock_that_cannot_be_had_is_explained(path, monkeypatch, error, words):
    Journal.create(path, HEADER).close()

    def refuse(descriptor):
        raise error

    monkeypatch.setattr(process_lock, "_try_lock", refuse)
    with pytest.raises(JournalError, match=words):
        Journal.open(path, write=True)
    assert Journal.open(path).header() == HEADER  # readers need none


# ---- readers of a run that is being written --------------------------------------------------------------------


def test_a_reader_knows_details_that_were_written_after_it_had_opened_the_file(path):
    """It used to say that the file was damaged."""
    writer = Journal.create(path, HEADER)
    add(writer, 1, "first")
    writer.commit({"now": 1.0}, ARRAYS)
    reader = Journal.open(path)
    add(writer, 2, "second")
    writer.commit({"now": 2.0}, ARRAYS)
    assert [event.detail for event in reader.event_rows()] == ["first", "second", "second"]
    reader.rehash()
    assert reader.sha256() == writer.sha256()
    assert reader.checkpoint()[0]["now"] == 2.0


def test_the_digest_of_a_reader_is_of_one_moment(path, monkeypatch):
    writer = Journal.create(path, HEADER)
    add(writer, 1, "first")
    writer.commit({"now": 1.0}, ARRAYS)
    before, reader, original = writer.sha256(), Journal.open(path), Journal._query

    def write_meanwhile(self, sql):
        if self is reader and "details" in sql:
            add(writer, 1, "meanwhile")
            writer.commit({"now": 2.0}, ARRAYS)
        return original(self, sql)

    monkeypatch.setattr(Journal, "_query", write_meanwhile)
    reader.rehash()
    assert reader.sha256() == before


# ---- files and disks that go away ------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["deleted", "moved", "replaced"])
def test_a_run_whose_file_is_taken_away_stops_and_says_so(path, what):
    writer = Journal.create(path, HEADER)
    writer.commit({"now": 1.0}, ARRAYS)
    away = path.with_name("away.sqlite")
    path.rename(away)
    if what == "replaced":
        shutil.copy(away, path)
    elif what == "deleted":
        away.unlink()
    with pytest.raises(JournalError, match=r"was moved, deleted or replaced while this run was writing to it"):
        writer.commit({"now": 2.0}, ARRAYS)
    if what == "moved":
        away.rename(path)
        writer.close()
        again = Journal.open(path, write=True)
        assert again.checkpoint()[0]["now"] == 1.0
        again.commit({"now": 2.0}, ARRAYS)


def test_a_file_of_arrays_that_is_taken_away_is_noticed(path):
    writer = Journal.create(path, HEADER)
    writer.commit({"now": 1.0}, {"params": np.zeros(LARGE)})
    path.with_name("run.sqlite-arrays").unlink()
    with pytest.raises(JournalError, match=r"run.sqlite-arrays was deleted while this run was writing to it"):
        writer.commit({"now": 2.0}, {"params": np.ones(LARGE)})


def test_a_run_whose_disk_is_full_stops_and_can_go_on_when_there_is_room(path):
    """A limit on the length of files fails as a full disk does, in the middle of a write."""
    writer = Journal.create(path, HEADER)
    writer.commit({"step": 1}, {"params": np.ones(LARGE)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    add(writer, 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, before[1]))
    try:
        with pytest.raises(JournalError, match=r"disk that holds .* is full.*make room, then `asyncfed resume"):
            writer.commit({"step": 2}, {"params": np.full(LARGE, 2.0)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    writer.close()
    again = Journal.open(path, write=True)
    state, arrays = again.checkpoint()
    assert state["step"] == 1
    assert np.all(arrays["params"] == 1.0)
    again.rewind(state["seq"])
    add(again, 2)
    again.commit({"step": 2}, {"params": np.full(LARGE, 2.0)}, in_one_file=True)
    again.close()
    assert os.listdir(path.parent) == [path.name]
    assert Journal.open(path).checkpoint()[0]["step"] == 2
