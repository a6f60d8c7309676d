"""Locks: one holder at a time, known by name, and gone with the process that held it."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from asyncfed.store import process_lock
from asyncfed.store.process_lock import LockHeldError, ProcessLock, find_holder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


def hold(path):
    """A process that holds the lock until it is killed."""
    program = (
        "import sys, time; from pathlib import Path; from asyncfed.store.process_lock import ProcessLock\n"
        "lock = ProcessLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_is_held_by_one_and_says_by_whom(path):
    lock = ProcessLock(path)
    for attempt in (lambda: ProcessLock(path), lambda: find_holder(path)):
        try:
            text = attempt()
        except LockHeldError as held:
            text = str(held)
        assert f"process {os.getpid()} on " in text
        assert time.strftime("%Y-%m-%d ") in text
    assert lock.held
    lock.release()
    lock.release()
    assert not lock.held
    assert not path.exists()
    assert find_holder(path) is None
    ProcessLock(path).release()


def test_a_lock_file_that_was_made_after_ones_own_was_deleted_is_left_to_its_holder(path):
    first = ProcessLock(path)
    path.unlink()  # by somebody who thought that it was left behind
    second = ProcessLock(path)
    first.release()
    assert find_holder(path) is not None
    with pytest.raises(LockHeldError):
        ProcessLock(path)
    second.release()
    assert not path.exists()


def test_a_killed_process_loses_its_lock_and_leaves_its_file_in_nobodys_way(path):
    process = hold(path)
    with pytest.raises(LockHeldError, match=f"process {process.pid} on"):
        ProcessLock(path)
    process.kill()
    process.communicate()
    assert path.exists()
    assert find_holder(path) is None
    lock = ProcessLock(path)
    assert json.loads(path.read_text())["pid"] == os.getpid()
    lock.release()


def test_a_forked_process_does_not_keep_the_lock_of_a_dead_one(path):
    told, tell = os.pipe()
    holder = os.fork()
    if holder == 0:
        lock = ProcessLock(path)
        if os.fork() == 0:  # it outlives the holder
            os.write(tell, b"%d" % os.getpid())
            assert not lock.held
            time.sleep(600)
            os._exit(0)
        time.sleep(600)
        os._exit(0)
    grandchild = int(os.read(told, 20))
    try:
        assert find_holder(path) is not None
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        ProcessLock(path).release()
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_a_lock_that_nobody_refers_to_any_more_is_released(path):
    lock = ProcessLock(path)
    del lock
    assert not path.exists()


def test_who_gets_a_file_that_was_just_deleted_tries_again(path, monkeypatch):
    """Between opening and locking, the holder may delete the file: others would then lock another of that name."""
    first, tried, original = ProcessLock(path), [], process_lock._try_lock

    def try_lock(descriptor):
        if not tried:
            tried.append(1)
            first.release()
        return original(descriptor)

    monkeypatch.setattr(process_lock, "_try_lock", try_lock)
    second = ProcessLock(path)
    assert path.exists()
    assert os.path.samestat(os.fstat(second._descriptor), path.stat())
    second.release()


def test_who_only_looks_does_not_keep_others_out(path, monkeypatch):
    path.touch()
    looking = os.open(path, os.O_RDWR)
    fcntl.flock(looking, fcntl.LOCK_EX)
    monkeypatch.setattr(time, "sleep", lambda seconds: fcntl.flock(looking, fcntl.LOCK_UN))
    ProcessLock(path).release()
    os.close(looking)


def test_a_holder_whose_disk_is_full_is_not_known_by_name(path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        lock = ProcessLock(path)
    assert find_holder(path) == "another process"
    lock.release()
