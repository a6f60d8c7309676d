"""One process at a time has a folder; the next is told which, since when and what to do."""

import subprocess
import sys

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.flower.folder_lock import FolderLock

HOLD = """
import subprocess, sys
from pathlib import Path
from asyncfed.flower.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
lock.take()
child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock, and a child of it."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock"), "--nodes", "3"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    yield process
    process.kill()
    process.wait()
    subprocess.run(["kill", str(child)], check=False)


def test_whoever_comes_second_is_told_who_holds_it_since_when_and_what_to_do(tmp_path, holder):
    with pytest.raises(ConfigError) as refusal:
        FolderLock(tmp_path / "lock").take()
    told = str(refusal.value)
    assert f"{tmp_path} is in use by process {holder.pid} on " in told
    assert " since 20" in told
    assert "--nodes 3" in told
    assert "`kill`" in told
    assert "Name another folder" in told


def test_a_killed_holder_holds_nothing_though_its_child_lives_on(tmp_path, holder):
    holder.kill()
    holder.wait()
    lock = FolderLock(tmp_path / "lock")
    lock.take()
    assert lock.is_held
    lock.release()


def test_it_can_be_taken_again_after_it_was_given_up(tmp_path):
    lock, other = FolderLock(tmp_path / "lock"), FolderLock(tmp_path / "lock")
    lock.take()
    with pytest.raises(ConfigError, match="in use"):
        other.take()
    assert not other.is_held
    lock.release()
    other.take()
    other.release()


def test_who_has_taken_it_this_moment_has_no_name_yet(tmp_path):
    lock = FolderLock(tmp_path / "lock")
    lock.take()
    lock.file.write_text("")
    with pytest.raises(ConfigError, match="in use by another process"):
        FolderLock(tmp_path / "lock").take()
    lock.release()
