"""The journal's file: what goes in comes out, and nothing that can happen to a file goes unexplained."""

import io
import json
import os
import sqlite3
import subprocess
import sys
from itertools import pairwise
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import AsyncFedError, JournalError
from asyncfed.core.types import Budget, Work
from asyncfed.data import InOrder, PaperRegression
from asyncfed.store import process_lock
from asyncfed.store.journal import Journal
from asyncfed.store.schema import APPLICATION_ID, DISPATCH, REPORT, SCHEMA_VERSION
from asyncfed.strategies import AFL

ARRAYS = {"params": np.arange(3.0), "tickets": np.array([4, 5], np.int64)}


def event(seq, detail=None):
    return (seq, 0.5 * seq, DISPATCH if seq % 2 else REPORT, seq, seq % 7, seq, None, 1.25, detail)


def add(journal, count, detail=None):
    for _ in range(count):
        number = None if detail is None else journal.intern(detail)
        journal.events.append(event(journal.next_seq, number))
        journal.next_seq += 1


def small_run(path, rounds=3, **how):
    work = Work(epochs=1, batch_size=4, learning_rate=0.01)
    experiment = af.Experiment(
        num_clients=3,
        data=PaperRegression(num_samples=24),
        split=InOrder(),
        strategy=AFL(concurrency=3, work=work),
        budget=Budget(rounds=rounds),
    )
    run = af.run(experiment, out=path, threads=1, **how)
    run.journal.close()
    return experiment


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


# ---- round trips -----------------------------------------------------------------------------------------------


def test_events_header_and_checkpoint_come_back(path):
    journal = Journal.create(path, {"name": "Größe", "numbers": [1, 2.5, None]})
    add(journal, 3, "why")
    journal.evaluations.append((0, 0, 0, 0.0, json.dumps({"loss": 2.0, "gone": None})))
    journal.evaluations.append((3, 3, 1, 1.5, json.dumps({"loss": 1.0, "drift": 4.0})))
    journal.commit({"now": 1.5}, ARRAYS, verdict="finished")
    journal.close()
    again = Journal.open(path)
    assert again.header() == {"name": "Größe", "numbers": [1, 2.5, None], "verdict": "finished"}
    assert list(again.event_rows()) == [(*event(seq)[:-1], "why") for seq in range(3)]
    assert again.event_columns()["kind"] == ["report", "dispatch", "report"]
    state, arrays = again.checkpoint()
    assert state == {"now": 1.5, "seq": 3}
    assert {name: array.tolist() for name, array in arrays.items()} == {n: a.tolist() for n, a in ARRAYS.items()}
    table = again.evaluation_columns()
    assert table["loss"] == [2.0, 1.0]
    assert np.isnan(table["drift"][0])
    assert np.isnan(table["gone"]).all()


def test_the_same_text_is_stored_once_even_after_reopening(path):
    journal = Journal.create(path, {})
    add(journal, 2, "a")
    journal.commit({}, ARRAYS)
    journal.close()
    journal = Journal.open(path, write=True)
    journal.rewind(2)
    assert [journal.intern("a"), journal.intern("b"), journal.intern("a")] == [0, 1, 0]
    add(journal, 1, "b")
    journal.commit({}, ARRAYS)
    assert journal.columns("details") == {"id": [0, 1], "text": ["a", "b"]}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=4).map(sorted))
def test_where_blocks_end_does_not_change_the_digest(cuts):
    whole, pieces = Journal.create(None, {}), Journal.create(None, {})
    for journal, bounds in ((whole, [0, 40]), (pieces, [0, *cuts, 40])):
        for first, last in pairwise(bounds):
            for n in range(first, last):
                add(journal, 1, f"text {n % 5}")
            journal.commit({}, ARRAYS)
    assert whole.sha256() == pieces.sha256()
    assert list(whole.event_rows()) == list(pieces.event_rows())
    digest = pieces.sha256()
    pieces.rehash()
    assert pieces.sha256() == digest


@given(st.integers(1, 8), st.floats(allow_nan=False))
def test_any_changed_number_changes_the_digest(column, value):
    one, other = Journal.create(None, {}), Journal.create(None, {})
    row = event(0)
    for journal, events in ((one, [row]), (other, [(*row[:column], value, *row[column + 1 :])])):
        journal.events, journal.next_seq = events, 1
        journal.commit(None, None)
    same = repr(value) == repr(row[column])
    assert (one.sha256() == other.sha256()) == same


def test_any_changed_text_changes_the_digest():
    digests = set()
    for text in ("a", "b"):
        add(journal := Journal.create(None, {}), 1, text)
        journal.commit(None, None)
        digests.add(journal.sha256())
    assert len(digests) == 2


def test_rewinding_forgets_what_came_after(path):
    journal = Journal.create(path, {})
    add(journal, 3)
    journal.commit({}, ARRAYS)
    digest = journal.sha256()
    add(journal, 2)
    journal.commit({}, ARRAYS)
    journal.rewind(3)
    assert journal.sha256() == digest
    assert journal.next_seq == 3


# ---- all or nothing --------------------------------------------------------------------------------------------


def test_a_commit_that_fails_leaves_the_file_as_it_was_and_can_be_made_again(path):
    journal = Journal.create(path, {})
    add(journal, 2)
    journal.commit({"now": 1.0}, ARRAYS)
    before = list(journal.event_rows()), journal.sha256(), journal.checkpoint()[0]
    add(journal, 2, "new")
    with pytest.raises(TypeError):
        journal.commit({"now": object()}, ARRAYS)
    assert (list(journal.event_rows()), journal.sha256(), journal.checkpoint()[0]) == before
    assert journal.columns("details")["text"] == []
    journal.commit({"now": 2.0}, ARRAYS)
    assert len(list(journal.event_rows())) == 4


@pytest.fixture
def no_locks(monkeypatch):
    """A file system on which everybody gets every lock, such as a mount of NFS that keeps locks to its own machine."""
    monkeypatch.setattr(process_lock, "_try_lock", lambda descriptor: True)


def test_two_writers_are_told_apart_and_the_first_one_wins(path, no_locks):
    add(first := Journal.create(path, {}), 2)
    first.commit({}, ARRAYS)
    second = Journal.open(path, write=True)
    second.rewind(2)
    add(first, 3)
    first.commit({}, ARRAYS)
    add(second, 1)
    with pytest.raises(JournalError, match=r"changed by someone else.*Two processes must not write.*asyncfed resume"):
        second.commit({}, ARRAYS)
    assert len(list(Journal.open(path).event_rows())) == 5


def test_a_writer_notices_that_another_has_taken_its_events_away(path, no_locks):
    add(first := Journal.create(path, {}), 2)
    first.commit({}, ARRAYS)
    add(first, 3)
    first.commit({}, ARRAYS)
    Journal.open(path, write=True).rewind(2)
    add(first, 1)
    with pytest.raises(JournalError, match="changed by someone else"):
        first.commit({}, ARRAYS)


def test_a_file_locked_by_another_process_is_explained(path, monkeypatch):
    journal = Journal.create(path, {})
    journal._connection.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalError, match=r"being written by another process.*Wait for it, or stop it"):
        journal.commit({}, ARRAYS)
    other.close()


# ---- what is not a run -----------------------------------------------------------------------------------------


def foreign(path):
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE bank (money)")
        file.execute("INSERT INTO bank VALUES (100)")
    file.close()


def not_sqlite(path):
    path.write_text("dear diary, " * 100)


def other_version(path):
    small_run(path)
    with sqlite3.connect(path) as file:
        file.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    file.close()


def truncated(path):
    small_run(path)
    path.write_bytes(path.read_bytes()[:6000])


def emptied(path):
    path.write_bytes(b"")


def only_the_mark(path):
    with sqlite3.connect(path) as file:
        file.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        file.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    file.close()


def folder(path):
    path.mkdir()


BAD_FILES = {
    foreign: "not an AsyncFed run; it is left untouched",
    not_sqlite: r"damaged or not an AsyncFed run \(file is not a database\).*restore it from a copy",
    other_version: rf"schema version {SCHEMA_VERSION + 1}; this AsyncFed reads versions 1 to .*that wrote it",
    truncated: "is damaged or not an AsyncFed run",
    emptied: r"is empty: .* stopped before it began.*Start it again with `asyncfed run --out",
    only_the_mark: "is damaged or not an AsyncFed run",
    folder: "There is no run at",
}


@pytest.mark.parametrize(("make", "words"), BAD_FILES.items(), ids=lambda v: getattr(v, "__name__", ""))
def test_opening_what_is_not_a_run_says_what_it_is_and_leaves_it_alone(path, make, words):
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    for use in (af.load, af.resume, af.verify):
        with pytest.raises(JournalError, match=words):
            use(path)
    assert (None if path.is_dir() else path.read_bytes()) == before


def test_a_missing_file_is_not_made(path):
    with pytest.raises(JournalError, match=r"There is no run at .*run\.sqlite.*asyncfed run --out"):
        af.load(path)
    assert not path.exists()


@pytest.mark.parametrize("make", [foreign, not_sqlite, other_version, folder], ids=lambda m: m.__name__)
def test_force_never_deletes_what_is_not_a_run(path, make):
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    with pytest.raises(JournalError):
        small_run(path, force=True)
    assert (None if path.is_dir() else path.read_bytes()) == before


def test_an_existing_run_is_only_replaced_by_force(path):
    small_run(path, rounds=3)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=r"exists already, and nothing was overwritten.*resume.*--out.*--force"):
        small_run(path, rounds=2)
    assert path.read_bytes() == before
    small_run(path, rounds=2, force=True)
    assert len(af.load(path).rounds["round"]) == 2


def test_a_folder_that_cannot_be_made_is_explained(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(JournalError, match=r"folder .*file cannot be made.*another --out"):
        small_run(tmp_path / "file" / "run.sqlite")


# ---- damage ----------------------------------------------------------------------------------------------------


def test_whatever_byte_is_damaged_the_answer_is_ours(path, tmp_path):
    """Flipped bytes all over the file: it still works, or it is an error in words; never anything else."""
    small_run(path, rounds=12)
    whole, damaged = path.read_bytes(), tmp_path / "damaged.sqlite"
    refused = 0
    for place in range(100, len(whole), len(whole) // 97):
        contents = bytearray(whole)
        contents[place] ^= 0x5B
        contents[place // 2] ^= 0xA4
        damaged.write_bytes(contents)
        try:
            verification = af.verify(damaged, threads=1)
            run = af.load(damaged)
            repr(run), run.participation(), run.rounds, run.journal.event_columns()
            refused += not verification.ok
        except AsyncFedError:
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("blob", [b"", b"PK\x03\x04 no zip", b"\x80\x04K\x01."], ids=["empty", "no zip", "a pickle"])
def test_a_damaged_checkpoint_is_refused(path, blob):
    small_run(path)
    with sqlite3.connect(path) as file:
        file.execute("UPDATE checkpoints SET arrays = ?", (blob,))
    file.close()
    with pytest.raises(JournalError, match=r"a checkpoint in it cannot be read.*copy"):
        af.load(path).params  # noqa: B018


def test_a_header_with_a_name_missing_is_damage(path):
    small_run(path)
    with sqlite3.connect(path) as file:
        file.execute("DELETE FROM header WHERE name = 'verdict'")
    file.close()
    for use in (af.resume, af.verify, lambda p: af.load(p).verdict):
        with pytest.raises(JournalError, match=r'is damaged: its header has no "verdict"\. Restore'):
            use(path)


class Bomb:
    """A pickle of it would run code when read."""

    def __reduce__(self):
        return os.mkdir, (os.environ["BOMB"],)


def test_a_checkpoint_with_a_pickled_array_is_refused_and_nothing_in_it_runs(path, tmp_path, monkeypatch):
    small_run(path)
    monkeypatch.setenv("BOMB", str(tmp_path / "exploded"))
    blob = io.BytesIO()
    np.savez(blob, params=np.array([Bomb()], dtype=object))
    with sqlite3.connect(path) as file:
        file.execute("UPDATE checkpoints SET arrays = ?", (blob.getvalue(),))
    file.close()
    with pytest.raises(JournalError, match="do not agree with their check sum"):
        af.load(path).params  # noqa: B018
    with sqlite3.connect(path) as file:  # as earlier versions wrote it, without a sum of the vectors
        file.execute("UPDATE checkpoints SET state = '{}', state_crc = ?", (crc32(b"{}"),))
    file.close()
    with pytest.raises(JournalError, match="allow_pickle"):
        af.load(path).params  # noqa: B018
    assert not (tmp_path / "exploded").exists()


# ---- a full disk -----------------------------------------------------------------------------------------------


def test_a_full_disk_is_explained_and_the_run_goes_on_once_there_is_room(path):
    journal = Journal.create(path, {"name": "x"})
    add(journal, 5)
    journal.commit({"now": 1.0}, ARRAYS)
    (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    add(journal, 20_000)
    with pytest.raises(JournalError, match=r"run\.sqlite is full.*last checkpoint is safe.*make room.*asyncfed resume"):
        journal.commit({"now": 2.0}, ARRAYS)
    reader = Journal.open(path)
    assert len(list(reader.event_rows())) == 5
    assert reader.checkpoint()[0]["now"] == 1.0
    reader.close()
    journal._connection.execute("PRAGMA max_page_count = 1000000")
    journal.commit({"now": 2.0}, ARRAYS)
    assert len(list(Journal.open(path).event_rows())) == 20_005


@pytest.mark.slow
def test_a_process_whose_files_may_not_grow_leaves_a_run_that_can_be_resumed(path, tmp_path):
    """A real limit of the system, met in the middle of a real run; without it, the run ends at the same bytes."""
    experiment = small_run(tmp_path / "whole.sqlite", rounds=1500)
    toml = tmp_path / "experiment.toml"
    toml.write_text(af.to_toml(experiment))
    command = f"ulimit -f 200; exec {sys.executable} -m asyncfed run {toml} --out {path} --checkpoint-seconds 0"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "Everything up to the last checkpoint is safe" in done.stderr.replace("\n", " ")
    assert not af.load(path).finished
    assert af.resume(path).sha256 == af.load(tmp_path / "whole.sqlite").sha256


# ---- files of the first schema ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_file_of_an_earlier_version_can_be_read_verified_and_continued(path, tmp_path, version):
    def make_older():
        with sqlite3.connect(path) as file:
            for table in ("payloads", "released", "messages") if version == 1 else ("released", "messages"):
                file.execute(f"DROP TABLE {table}")
            file.execute("ALTER TABLE rounds DROP COLUMN skipped")
            file.execute(f"PRAGMA user_version = {version}")

    small_run(path)
    make_older()
    assert not af.load(path).rounds["skipped"].any()
    whole = af.load(path).sha256
    assert af.verify(path).ok
    with sqlite3.connect(path) as file:
        file.execute("UPDATE header SET value = '\"interrupted\"' WHERE name = 'verdict'")
    assert af.resume(path).sha256 == whole
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


# ---- payloads --------------------------------------------------------------------------------------------------------


def test_payloads_live_until_a_checkpoint(path):
    journal = Journal.create(path, {})
    journal.payloads.append((7, np.arange(3.0)))
    journal.commit(None, None)
    journal.close()
    again = Journal.open(path, write=True)
    assert again.payload(7, np.dtype(float)).tolist() == [0.0, 1.0, 2.0]
    again.payloads.append((8, np.arange(3.0)))
    again.commit({}, ARRAYS)
    assert again.columns("payloads")["ticket"] == []
    with pytest.raises(JournalError, match="ticket 7 is missing"):
        again.payload(7, np.dtype(float))


def test_messages_live_until_a_checkpoint_and_may_be_empty(path):
    journal = Journal.create(path, {})
    sent = {"indices": np.array([3, 5], "<u4"), "values": np.array([[0.5], [-1.0]], np.float32)}
    journal.messages += [(7, sent), (8, {})]
    journal.commit(None, None)
    journal.close()
    again = Journal.open(path, write=True)
    read = again.message(7)
    assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in read.items()} == {
        name: (a.dtype, a.shape, a.tobytes()) for name, a in sent.items()
    }
    assert (again.message(8), again.message(9)) == ({}, None)
    again.commit({}, ARRAYS)
    assert again.message(7) is None


def test_a_journal_can_be_told_to_wait_for_the_disk(path):
    journal = Journal.create(path, {})
    journal.survive_power_loss()
    assert journal._connection.execute("PRAGMA synchronous").fetchone() == (2,)
