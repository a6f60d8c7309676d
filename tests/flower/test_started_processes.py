"""What a killed federation left is ended, what merely has its number is not."""

import json
import os
import subprocess
import sys
import time

import pytest

from asyncfed.flower import started_processes
from asyncfed.flower.started_processes import MARK, StartedProcesses, began, end_leftovers

STUBBORN = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
)


@pytest.fixture
def sleeper():
    """Start processes that sleep; none is left afterwards."""
    running = []

    def start(program="import time; print('on', flush=True); time.sleep(60)", **environment):
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, **environment}
        )
        assert process.stdout.readline() == b"on\n"
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def records(tmp_path):
    return StartedProcesses(tmp_path / "processes.json")


def test_a_recorded_process_is_ended_and_named(records, sleeper):
    process = sleeper()
    records.add("superlink", process.pid)
    assert end_leftovers(records.file) == [f"superlink ({process.pid})"]
    assert process.wait(1) == -15


def test_one_that_ignores_sigterm_is_killed(records, sleeper, monkeypatch):
    monkeypatch.setattr(started_processes, "STOP_SECONDS", 0.5)
    process = sleeper(STUBBORN)
    records.add("superlink", process.pid)
    end_leftovers(records.file)
    assert process.wait(1) == -9


def test_what_a_recorded_process_started_is_found_by_its_mark(records, sleeper):
    """Its parent is gone already; it is in no group of ours and recorded nowhere."""
    records.write()
    child, other = sleeper(**{MARK: records.mark}), sleeper(**{MARK: "of another federation"})
    [ended] = end_leftovers(records.file)
    assert ended.endswith(f"({child.pid})")
    assert child.wait(1) == -15
    assert other.poll() is None


def test_a_number_that_is_another_processs_by_now_is_left_alone(records, sleeper):
    process = sleeper()
    records.add("superlink", process.pid)
    written = json.loads(records.file.read_text())
    written["processes"][0]["began"] = written["processes"][0]["began"] + "1"  # it began at another moment
    records.file.write_text(json.dumps(written))
    assert end_leftovers(records.file) == []
    assert process.poll() is None


def test_two_processes_begin_at_different_moments_and_a_zombie_at_none(sleeper):
    first = sleeper()
    time.sleep(0.05)  # the clock ticks a hundred times a second
    second = sleeper()
    assert began(first.pid) == began(first.pid) != began(second.pid)
    second.kill()
    deadline = time.monotonic() + 5
    while began(second.pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_ended_properly_leaves_no_file_and_nothing_to_end(records, sleeper):
    process = sleeper()
    records.add("node-0", process.pid)
    records.remove("node-0")
    records.clear()
    assert process.poll() is None
    assert end_leftovers(records.file) is None


def test_clearing_ends_what_is_still_marked(records, sleeper):
    child = sleeper(**{MARK: records.mark})
    records.clear()
    assert child.wait(1) == -15


def test_a_damaged_file_ends_nothing(records):
    records.file.write_text('{"mark": 3')
    assert end_leftovers(records.file) == []


def test_only_the_owner_may_read_the_records(records):
    records.write()
    assert records.file.stat().st_mode & 0o777 == 0o600
