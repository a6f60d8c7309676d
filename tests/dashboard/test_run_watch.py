"""Files that grow, vanish, are damaged or replaced are shown as they are; nothing is ever written to their folder."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from asyncfed.core.errors import JournalError
from asyncfed.dashboard import run_watch
from asyncfed.dashboard.run_folder import NoSuchRunError, RunFolder
from asyncfed.dashboard.run_watch import RunWatch
from asyncfed.store.journal import Journal
from asyncfed.store.process_lock import ProcessLock

from .conftest import open_dashboard, small_run, write_header


@pytest.fixture
def folder(runs, tmp_path):
    folder = tmp_path / "runs"
    shutil.copytree(runs, folder)
    return folder


@pytest.fixture
def watch(folder):
    return RunWatch(RunFolder(folder))


def states(watch):
    return {card["id"]: card["state"] for card in watch.cards()}


def test_runs_appear_change_and_vanish(watch, folder):
    assert states(watch) == {"named.sqlite": "finished", "other~2Fplain~20run.sqlite": "finished"}
    before = watch.change
    watch.look()
    assert watch.change == before  # nothing happened
    shutil.copy(folder / "named.sqlite", folder / "new.sqlite")
    watch.look()
    assert watch.change == before + 1
    assert "new.sqlite" in states(watch)
    (folder / "new.sqlite").unlink()
    watch.look()
    assert "new.sqlite" not in states(watch)
    with pytest.raises(NoSuchRunError):
        watch.view("new.sqlite")


@pytest.mark.parametrize("damage", [b"", b"no database at all", b"SQLite format 3\0" + bytes(84)])
def test_what_is_no_run_is_said_to_be_unreadable(watch, folder, damage):
    (folder / "bad.sqlite").write_bytes(damage)
    card = next(card for card in watch.cards() if card["id"] == "bad.sqlite")
    assert card["state"] == "unreadable"
    assert "bad.sqlite" in card["reason"]
    with pytest.raises(JournalError):
        watch.view("bad.sqlite")
    assert states(watch)["named.sqlite"] == "finished"


def test_a_run_damaged_while_it_is_shown(watch, folder):
    view = watch.view("named.sqlite")
    path = folder / "named.sqlite"
    content = bytearray(path.read_bytes())
    content[4096:20000] = os.urandom(20000 - 4096)
    path.write_bytes(content)
    watch.look()
    assert states(watch)["named.sqlite"] == "unreadable"
    with pytest.raises(JournalError):
        watch.view("named.sqlite")
    assert view.tickets.count


@pytest.mark.parametrize("place", ["ticket", "client"])
def test_numbers_that_would_fill_the_memory_are_refused(watch, folder, place):
    with closing(Journal.create(folder / "forged.sqlite", {"num_clients": 2, "verdict": "interrupted", "reason": "",
                                                           "experiment": {"strategy": {}}})) as journal:  # fmt: skip
        ticket, client = (10**14, 0) if place == "ticket" else (0, 10**14)
        journal.events.append((0, 0.0, 0, ticket, client, 0, None, None, journal.intern("{}")))
        journal.next_seq = 1
        journal.commit({"now": 0.0}, {})
    with pytest.raises(JournalError, match="damaged"):
        watch.view("forged.sqlite")


@pytest.mark.parametrize(
    "entry",
    [
        {"experiment": {"strategy": {}, "budget": {"rounds": "many"}}},
        {"experiment": {"strategy": {"kind": ["x"], "max_staleness": "a"}, "seed": float("nan"), "name": 7}},
        {"experiment": {"strategy": {"rule": 3}, "budget": 5, "delays": {"download": 3}}},
        {"privacy": {"epsilon": float("inf")}},
        {"live": {"engine": 3, "absent": "x"}},
        {"client_names": 5},
    ],
)
def test_headers_that_make_no_sense_disturb_nobody(folder, entry):
    write_header(folder / "named.sqlite", **entry)
    with open_dashboard(folder) as client:
        assert len(client.get("/api/runs").json()["runs"]) == 2
        for rest in ("", "/curves", "/staleness", "/clients", "/lanes", "/clients/2", "/refusals"):
            assert client.get(f"/api/runs/named.sqlite{rest}").status_code in (200, 422)
        assert client.get("/api/runs/other~2Fplain~20run.sqlite").status_code == 200


def test_a_run_that_is_replaced_is_read_anew(watch, folder):
    view = watch.view("named.sqlite")
    before = (view.header["experiment"]["strategy"]["kind"], view.tickets.num_events)
    (folder / "named.sqlite").unlink()
    small_run(folder / "named.sqlite", strategy="fedavg", rounds=3)
    watch.look()
    view = watch.view("named.sqlite")
    assert view.header["experiment"]["strategy"]["kind"] == "fedavg" != before[0]
    assert 0 < view.tickets.num_events < before[1]


def snapshot(folder):
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_size, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    } | {str(path): path.stat().st_mtime_ns for path in (folder, folder / "other")}


def use_everything(folder):
    with open_dashboard(folder) as client:
        for run in client.get("/api/runs").json()["runs"]:
            for rest in ("", "/curves", "/staleness", "/clients", "/lanes", "/clients/2", "/refusals"):
                assert client.get(f"/api/runs/{run['id']}{rest}").status_code == 200
        client.dashboard.watch.look()


def test_nothing_is_written_to_the_folder(folder):
    before = snapshot(folder)
    use_everything(folder)
    assert snapshot(folder) == before


KILLED = r"""
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("UPDATE header SET value = '\"interrupted\"' WHERE name = 'verdict'")
os._exit(1)
"""


def test_the_log_of_a_killed_run_is_left_to_the_run(folder):
    """Whoever opens such a file to write, even to close it again, moves its log into it."""
    path = folder / "named.sqlite"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    log = path.with_name(path.name + "-wal")
    assert log.stat().st_size
    before, content = path.read_bytes(), log.read_bytes()
    use_everything(folder)
    assert (path.read_bytes(), log.read_bytes()) == (before, content)
    assert states(RunWatch(RunFolder(folder)))["named.sqlite"] in ("running", "interrupted")


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is read-only for root")
def test_a_folder_that_cannot_be_written_to(folder):
    for path in (folder, folder / "other"):
        path.chmod(0o500)
    try:
        use_everything(folder)
    finally:
        for path in (folder, folder / "other"):
            path.chmod(0o700)


def test_a_read_only_file_system(folder, monkeypatch):
    """As if every attempt to open a file to write were refused, by SQLite and by everybody else."""
    connect, open_file = sqlite3.connect, os.open

    def connect_read_only(name, *arguments, **settings):
        assert "immutable=1" in str(name) or "mode=ro" in str(name)
        return connect(name, *arguments, **settings)

    def open_read_only(path, flags, *arguments, **settings):
        if str(path).startswith(str(folder)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system")
        return open_file(path, flags, *arguments, **settings)

    monkeypatch.setattr(sqlite3, "connect", connect_read_only)
    monkeypatch.setattr(os, "open", open_read_only)
    use_everything(folder)


def test_a_locked_run_is_running_and_its_holder_is_named(watch, folder):
    path = folder / "named.sqlite"
    write_header(path, verdict="interrupted")
    os.utime(path, (1, 1))
    lock = ProcessLock(path.with_name(path.name + "-lock"))
    card = watch.card("named.sqlite")
    assert card["state"] == "running"
    assert card["holder"]["pid"] == str(os.getpid())
    assert watch.cards()[0]["state"] == "running"
    assert watch.view("named.sqlite").state.state == "running"
    lock.release()
    watch.look()  # the file itself has not changed
    assert states(watch)["named.sqlite"] == "interrupted"
    assert watch.view("named.sqlite").state.state == "interrupted"


def test_views_are_given_up_when_there_are_too_many(watch, folder, monkeypatch):
    monkeypatch.setattr(run_watch, "MOST_VIEWS", 1)
    first = watch.view("named.sqlite")
    watch.view("other~2Fplain~20run.sqlite")
    assert watch.view("named.sqlite") is not first


def test_many_runs_are_listed_fast_once_they_are_known(folder):
    for number in range(300):
        shutil.copy(folder / "named.sqlite", folder / f"{number}.sqlite")
    watch = RunWatch(RunFolder(folder))
    begun = time.process_time()
    assert len(watch.cards()) == 302
    first = time.process_time() - begun
    begun = time.process_time()
    watch.look()
    assert time.process_time() - begun < first / 2
