"""`asyncfed flower up` on this machine: killed, started again, started twice; and who may read its files."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.flower.folder_lock import FolderLock
from asyncfed.flower.local_federation import CONNECTION, Federation
from asyncfed.flower.started_processes import began

PATIENCE = 120.0


def processes(folder):
    """Commands of processes of the federation in this folder, by their numbers."""
    home, found = f"FLWR_HOME={folder / 'home'}".encode(), {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if words and home in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = words
        except OSError:
            continue
    return found


def wait_for(happened, what, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not (answer := happened()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.2)
    return answer


class Up:
    """An `asyncfed flower up` in a process of its own."""

    started: ClassVar = []

    def __init__(self, folder, *options):
        self.folder = folder
        self.output = folder.with_name(f"{folder.name}-{time.monotonic_ns()}.txt")
        command = [
            Path(sys.executable).parent / "asyncfed",
            "flower",
            "up",
            "--nodes",
            "2",
            "--folder",
            folder,
            *options,
        ]
        with self.output.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.started.append(self.process)

    def said(self):
        return self.output.read_text()

    def ready(self):
        """Both nodes are online, under this very SuperLink."""
        wait_for(lambda: "SuperLink at" in self.said() or self.process.poll() is not None, "the SuperLink")
        assert self.process.poll() is None, self.said()
        federation = Federation(self.folder, 2)  # asks the SuperLink, starts nothing

        def online():
            listed = json.loads(federation.flwr("supernode", "list", CONNECTION, "--format", "json"))["nodes"]
            return sum(node["status"] == "online" for node in listed) == 2

        wait_for(online, "two nodes to be online")
        return self

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(60)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "federation"
    yield folder
    for process in Up.started:
        process.kill()
        process.wait()
    for pid in processes(folder):
        os.kill(pid, signal.SIGKILL)


def test_a_killed_one_leaves_nothing_and_the_next_one_works_at_once(folder):
    """Before: six processes stayed, and the second had two SuperLinks on one database and no nodes."""
    first = Up(folder).ready()
    before = processes(folder)
    assert len([words for words in before.values() if "flower-supernode" in words]) == 2
    stubborn = next(pid for pid, words in before.items() if "flower-supernode" in words)
    os.kill(stubborn, signal.SIGSTOP)  # it cannot hear that it should end: what SIGKILL of the next one is for
    first.end(signal.SIGKILL)
    wait_for(
        lambda: not any("flower-superlink" in words for words in processes(folder).values()), "the SuperLink to end"
    )
    assert stubborn in processes(folder)

    second = Up(folder).ready()
    assert "ended what a killed predecessor had left running" in second.said()
    assert f"({stubborn})" in second.said()
    assert not before.keys() & processes(folder).keys()
    assert len([words for words in processes(folder).values() if "flower-superlink" in words]) == 1

    third = Up(folder)  # while the second runs
    assert third.process.wait(60) == 2
    told = " ".join(third.said().split())
    assert f"is in use by process {second.process.pid} on" in told
    assert second.process.poll() is None

    readable = [path for path in (folder, *folder.rglob("*")) if path.lstat().st_mode & 0o077]
    assert [path for path in readable if path.suffix not in (".pub", ".crt")] == []  # what is made to be given away
    assert {"state.db", "processes.json", "lock"} <= {path.name for path in folder.iterdir()}

    second.end()
    assert processes(folder) == {}
    assert not (folder / "processes.json").exists()


def test_files_that_an_older_version_left_readable_are_made_private(tmp_path):
    folder = tmp_path / "old"
    (folder / "keys").mkdir(parents=True)
    for name in ("state.db", "keys/node-0"):
        (folder / name).touch(mode=0o644)
    folder.chmod(0o755)
    Federation(folder, 1).prepare()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, folder / "keys", folder / "state.db")}
    assert modes == {"old": 0o700, "keys": 0o700, "state.db": 0o600}
    assert (folder / "keys" / "node-0").stat().st_mode & 0o777 == 0o600


def test_a_folder_with_other_things_in_it_stays_as_it_is(tmp_path):
    (tmp_path / "notes.txt").touch(mode=0o644)
    tmp_path.chmod(0o755)
    Federation(tmp_path, 1).prepare()
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "notes.txt").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700


def test_one_that_is_refused_does_not_end_the_processes_of_the_other(tmp_path):
    holder = FolderLock(tmp_path / "lock")
    holder.take()
    (tmp_path / "processes.json").write_text("{}")
    with pytest.raises(ConfigError, match="is in use by process"), Federation(tmp_path, 1):
        pass
    assert (tmp_path / "processes.json").exists()
    holder.release()


@pytest.fixture
def spawned(tmp_path):
    """A federation without Flower, whose processes are what a test spawns."""
    (tmp_path / "logs").mkdir()
    federation = Federation(tmp_path, 1)
    yield federation
    federation._started.clear()


def test_the_number_of_a_process_that_ended_by_itself_is_not_used_again(spawned, monkeypatch):
    spawned.spawn("node-0", "true")
    wait_for(spawned.ended, "its end", 20.0)
    killed = []
    monkeypatch.setattr(os, "killpg", lambda *group: killed.append(group))  # it may be another program's by now
    spawned.end("node-0")
    assert killed == []


def test_what_a_process_that_ended_by_itself_has_left_is_ended_with_it(spawned, tmp_path):
    spawned.spawn("node-0", "sh", "-c", f"sleep 60 & echo $! > {tmp_path / 'left'}")
    wait_for(spawned.ended, "its end", 20.0)
    left = int((tmp_path / "left").read_text())
    assert began(left) is not None
    spawned.end("node-0")
    wait_for(lambda: began(left) is None, "the end of what it left", 20.0)


def test_a_folder_of_another_user_is_refused_before_anything_in_it_is_believed(tmp_path, monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as own:
        recorded = {"mark": "", "processes": [{"name": "node-0", "pid": own.pid, "began": began(own.pid)}]}
        (tmp_path / "processes.json").write_text(json.dumps(recorded))
        another = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: another)
        with pytest.raises(ConfigError, match=rf"belongs to user {another - 1}, and you are {another}: .* --folder"):
            Federation(tmp_path, 1).start()
        assert own.poll() is None
        own.kill()
