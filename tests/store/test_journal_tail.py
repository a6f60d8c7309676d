"""A tail reads everything once, notices when what it read is no longer there, and changes nothing."""

import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.store import journal_tail
from asyncfed.store.journal import Journal
from asyncfed.store.journal_tail import JournalTail

HEADER = {"num_clients": 2, "verdict": "interrupted", "reason": "", "asyncfed": "test"}


def write(journal, count, updates=None):
    for _ in range(count):
        seq = journal.next_seq
        journal.next_seq += 1
        journal.events.append((seq, float(seq), 5, None, 0, 0, 1.0, None, journal.intern(f'"text {seq}"')))
    if updates is not None:
        journal.evaluations.append((updates, 0, 0, 0.0, '{"objective": 1.0}'))
    journal.commit({"now": 0.0}, {})


@pytest.fixture
def journal(tmp_path):
    return Journal.create(tmp_path / "run.sqlite", HEADER)


def test_each_row_is_read_once(journal):
    tail = JournalTail(journal.path)
    assert tail.read().num_events == 0
    write(journal, 3, updates=0)
    new = tail.read()
    assert (new.num_events, len(new.details), len(new.evaluations), new.restarted) == (3, 3, 1, False)
    assert tail.read()[3:] == (0, b"", [], [], [])
    write(journal, 2, updates=5)
    new = tail.read()
    assert (new.num_events, [text for _, text in new.details]) == (2, ['"text 3"', '"text 4"'])
    assert [row[0] for row in new.evaluations] == [5]


def test_a_long_file_is_read_in_parts(journal, monkeypatch):
    monkeypatch.setattr(journal_tail, "MOST_BLOCKS", 2)
    for _ in range(5):
        write(journal, 1)
    tail = JournalTail(journal.path)
    parts = [tail.read() for _ in range(3)]
    assert [part.num_events for part in parts] == [2, 2, 1]
    assert [part.more for part in parts] == [True, True, False]


def test_another_run_under_the_same_name(journal):
    tail = JournalTail(journal.path)
    write(journal, 3)
    tail.read()
    journal.close()
    again = Journal.create(journal.path, HEADER, replace=True)
    write(again, 1)
    new = tail.read()
    assert new.restarted
    assert new.num_events == 1


def test_a_run_that_went_back_to_its_checkpoint(journal):
    write(journal, 2)
    tail = JournalTail(journal.path)
    write(journal, 3)
    assert tail.read().num_events == 5
    journal.rewind(2)
    write(journal, 1)
    new = tail.read()
    assert new.restarted
    assert new.num_events == 3


def test_a_run_that_is_gone(journal):
    tail = JournalTail(journal.path)
    tail.read()
    journal.close()
    journal.path.unlink()
    with pytest.raises(JournalError, match="There is no run"):
        tail.read()


def test_the_whole_of_a_finished_run(tmp_path):
    run = af.run(af.presets.regression(strategy="afl", rounds=5), out=tmp_path / "run.sqlite")
    new = JournalTail(run.journal.path).read()
    assert new.num_events == len(list(run.journal.event_rows()))
    assert len(new.rounds) == 5
    assert new.header["verdict"] == "finished"
