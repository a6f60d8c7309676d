"""Files of runs: whole or not there at all, and readable where nothing may be written."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.store import files
from asyncfed.store.journal import Journal

NOBODY = 65534


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


# ---- making ----------------------------------------------------------------------------------------------------


def nothing_written(path):
    path.touch()


def no_tables_yet(path):
    """What versions before left when they were killed while making a file."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert path.stat().st_size > 0


@pytest.mark.parametrize("make", [nothing_written, no_tables_yet])
@pytest.mark.parametrize("force", [False, True])
def test_a_file_with_nothing_in_it_is_in_nobodys_way(small, path, make, force):
    make(path)
    af.run(small(), out=path, force=force).journal.close()
    assert af.load(path).finished


@pytest.mark.parametrize("make", [nothing_written, no_tables_yet])
@pytest.mark.parametrize("use", [af.load, af.resume, af.verify])
def test_a_file_with_nothing_in_it_says_what_happened_and_what_to_do(path, make, use):
    make(path)
    with pytest.raises(JournalError, match=r"is empty: .* stopped before it began.*`asyncfed run --out"):
        use(path)


def test_a_file_whose_tables_still_wait_beside_it_is_not_empty(small, path, tmp_path):
    """A database that was not closed may have all it holds in the file beside it."""
    source = tmp_path / "other.sqlite"
    connection = sqlite3.connect(source, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE bank (money)")
    for ending in ("", "-wal"):
        path.with_name(path.name + ending).write_bytes(source.with_name(source.name + ending).read_bytes())
    connection.close()
    for force in (False, True):
        with pytest.raises(JournalError, match=r"exists already|not an AsyncFed run; it is left untouched"):
            af.run(small(), out=path, force=force)
    assert sqlite3.connect(path).execute("SELECT name FROM sqlite_master").fetchall() == [("bank",)]


KILLED_WHILE_MAKING = """
import os, signal, sys
from asyncfed.store import files
from asyncfed.store.journal import Journal

class DiesWhenWritten(dict):
    def items(self):  # the tables are there, and nothing is committed
        os.kill(os.getpid(), signal.SIGKILL)

Journal.create(sys.argv[1], DiesWhenWritten(name="x"))
"""


def test_a_process_killed_while_it_makes_a_file_leaves_none_of_that_name(small, path):
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_MAKING, str(path)], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not path.exists()
    with pytest.raises(JournalError, match="There is no run at"):
        af.resume(path)
    af.run(small(), out=path).journal.close()
    assert af.verify(path).ok


def test_making_a_file_leaves_nothing_beside_it(path):
    Journal.create(path, {"name": "x"}).close()
    assert os.listdir(path.parent) == [path.name]
    Journal.create(path, {"name": "y"}, replace=True).close()
    assert os.listdir(path.parent) == [path.name]
    assert Journal.open(path).header() == {"name": "y"}


def test_what_a_replaced_run_had_not_yet_moved_into_its_file_is_gone_with_it(path):
    """The file beside a run's own belongs to the run before; the new one must not read it."""
    old = Journal.create(path, {"name": "old"})
    old.commit({"now": 1.0}, {})
    old.finish_writing()
    Journal.create(path, {"name": "new"}, replace=True).close()
    assert Journal.open(path).header() == {"name": "new"}
    assert Journal.open(path).checkpoint() is None


def test_of_two_that_make_the_same_file_at_once_one_is_refused(path, monkeypatch):
    monkeypatch.setattr(files, "check_free", lambda *arguments: None)
    monkeypatch.setattr(Path, "exists", lambda self: False)
    Journal.create(path, {"name": "other"}).close()
    with pytest.raises(JournalError, match="made by another process meanwhile, and nothing was overwritten"):
        Journal.create(path, {"name": "mine"})
    monkeypatch.undo()
    assert Journal.open(path).header() == {"name": "other"}


def test_a_file_system_without_links_will_do(path, monkeypatch):
    def refuse(*names):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    Journal.create(path, {"name": "x"}).close()
    assert Journal.open(path).header() == {"name": "x"}


def test_what_is_no_file_is_left_alone(tmp_path):
    with pytest.raises(JournalError, match="is not a file, and nothing was overwritten"):
        Journal.create(tmp_path, {}, replace=True)


# ---- where nothing may be written ------------------------------------------------------------------------------


@contextmanager
def read_only(folder):
    """A folder nobody may write to, seen by a user whom permissions bind."""
    user = os.geteuid()
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    try:
        if user == 0:
            os.seteuid(NOBODY)
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


@pytest.fixture
def public_folder():
    """pytest's own folders can be entered by one user only."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_finished_run_in_a_read_only_folder_can_be_shown_and_verified(small, public_folder):
    path = public_folder / "a run #1?.sqlite"
    run = af.run(small(), out=path)
    digests = run.sha256
    run.journal.close()
    assert af.verify(path).ok  # everything is imported now, also what nobody may read
    with read_only(public_folder):
        with pytest.raises(OSError):
            (public_folder / "other").touch()
        assert af.load(path).sha256 == digests
        assert af.verify(path).ok
        assert os.listdir(public_folder) == [path.name]


def test_a_run_that_was_not_closed_cannot_be_read_there_and_says_what_to_do(small, public_folder):
    path = public_folder / "run.sqlite"
    run = af.run(small(), out=path)
    waiting = path.with_name(path.name + "-wal")
    contents = waiting.read_bytes()
    run.journal.close()
    waiting.write_bytes(contents)
    with read_only(public_folder), pytest.raises(JournalError, match=r"not closed by its last writer.*Copy it and run"):
        af.load(path)
