"""A journal that erases: what was deleted is in no file any more, whether it was in a page or in many."""

import sqlite3

import numpy as np
import pytest

from asyncfed.store.journal import Journal

HEADER = {"num_clients": 2, "verdict": "interrupted"}


def is_left(path, vector):
    """Whether any 16 bytes of the vector are in the run's files, at 200 places of it at most."""
    data = vector.tobytes()
    step = 8 * max(1, len(vector) // 200)
    files = [file.read_bytes() for file in path.parent.glob(f"*{path.name}*")]
    return any(data[at : at + 16] in file for at in range(0, len(data) - 15, step) for file in files)


def write_and_delete(path, sizes, erase):
    """Commit payloads and messages, then a checkpoint with another vector, then one without: what each has left."""
    journal = Journal.create(path, HEADER)
    if erase:
        journal.erase_what_is_deleted()
    chance = np.random.default_rng(0)
    sent = [chance.normal(size=size) for size in sizes]
    for ticket, vector in enumerate(sent):
        journal.payloads.append((ticket, vector))
        journal.messages.append((ticket, {"change": vector + 1.0}))
        journal.commit(None, None)
    assert all(is_left(path, vector) for vector in sent)
    waiting = chance.normal(size=max(sizes))
    journal.commit({"now": 0.0}, {"trained": waiting})
    assert is_left(path, waiting)
    left = [is_left(path, vector) or is_left(path, vector + 1.0) for vector in sent]
    journal.commit({"now": 1.0}, {"params": np.zeros(3)})
    left.append(is_left(path, waiting))
    journal.close()
    return left


SIZES = [[3, 5, 8], [400, 3, 700], [20_000, 11], [11] * 60]


@pytest.mark.parametrize("sizes", SIZES, ids=["in a page", "overflowing", "many pages", "many rows"])
def test_nothing_that_was_deleted_is_left(tmp_path, sizes):
    assert not any(write_and_delete(tmp_path / "erased.sqlite", sizes, erase=True))
    assert any(write_and_delete(tmp_path / "kept.sqlite", sizes, erase=False))


def test_a_reader_sees_the_last_commit_and_may_go_on_reading(tmp_path):
    path = tmp_path / "run.sqlite"
    journal = Journal.create(path, HEADER)
    journal.erase_what_is_deleted()
    journal.commit({"now": 0.0}, {"params": np.ones(2)})
    reader = Journal.open(path)
    assert reader.checkpoint()[1]["params"].tolist() == [1.0, 1.0]
    journal.commit({"now": 1.0}, {"params": np.zeros(2)})
    assert reader.checkpoint()[1]["params"].tolist() == [0.0, 0.0]
    reader.close()
    with sqlite3.connect(path) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("delete",)  # and not wal, which would stay
