"""A program that was started bound to its parent ends with it, even if the parent is killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asyncfed.flower import start_bound
from asyncfed.flower.started_processes import began

PARENT = f"""
import os, subprocess, sys, time
bound = [sys.executable, "-I", "-S", {start_bound.__file__!r}, str(os.getpid())]
child = subprocess.Popen([*bound, "sleep", "60"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(60)
"""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can do it")


def test_a_child_of_a_killed_parent_ends():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    command = Path(f"/proc/{child}/cmdline")
    deadline = time.monotonic() + 20
    while not command.read_text().startswith("sleep"):  # it has become the program
        assert time.monotonic() < deadline
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    while began(child) is not None:
        assert time.monotonic() < deadline, "it outlived its parent"
        time.sleep(0.02)


def test_one_whose_parent_is_gone_already_does_not_start():
    nobody = [sys.executable, "-I", "-S", start_bound.__file__, str(os.getpid() + 1), "echo", "started"]
    done = subprocess.run(nobody, capture_output=True, text=True, check=False)
    assert done.returncode
    assert not done.stdout
    assert "has ended" in done.stderr
