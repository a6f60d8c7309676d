"""Worker processes: results, errors, and how they end with Ctrl-C, a killed parent, or one of them dead."""

import importlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from operator import add, truediv

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.runs.process_pool import ProcessPool, SameProcess, WorkerDiedError, check_portable, open_pool

JOBS = """
import os, time

class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")

def raise_unpicklable():
    raise Unpicklable(1, 2)

def raise_interrupt():
    raise KeyboardInterrupt

def sleep_for_hours():
    time.sleep(10_000)

def large(size):
    return b"x" * size

remembered = None

def remember(value):
    global remembered
    remembered = value

def recall():
    return remembered, os.getpid()
"""


@pytest.fixture
def jobs_module(tmp_path, monkeypatch):
    """A module that workers can import."""
    (tmp_path / "jobs_of_a_test.py").write_text(JOBS)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("jobs_of_a_test")
    del sys.modules["jobs_of_a_test"]


def gone(process):
    """Whether the process has ended, within some seconds."""
    for _ in range(500):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("count", [1, 2])
def test_jobs_are_finished_whatever_the_number_of_processes(count):
    with open_pool(count) as pool:
        jobs = {pool.submit(add, number, 1): number for number in range(5)}
        assert {jobs[job]: job.result() for job in pool.finished(jobs)} == {n: n + 1 for n in range(5)}


def test_one_process_is_this_one():
    assert isinstance(open_pool(1), SameProcess)
    with open_pool(1) as pool:
        assert pool.submit(os.getpid).result() == os.getpid()


def test_workers_are_other_processes_begin_alike_and_start_when_needed(jobs_module):
    with ProcessPool(3, jobs_module.remember, ("something",)) as pool:
        found = [pool.submit(jobs_module.recall).result() for _ in range(3)]
    assert {value for value, _ in found} == {"something"}
    assert len({process for _, process in found}) == 1  # one was always idle
    assert os.getpid() not in {process for _, process in found}
    assert gone(found[0][1])


def test_large_results_and_arguments_pass(jobs_module):
    with ProcessPool(2) as pool:
        jobs = [
            pool.submit(jobs_module.large, 3_000_000),
            pool.submit(len, jobs_module.large(3_000_000)),
            pool.submit(jobs_module.large, 3_000_000),
        ]
        first, length, last = (job.result() for job in jobs)
    assert (len(first), length, len(last)) == (3_000_000, 3_000_000, 3_000_000)


@pytest.mark.parametrize("count", [1, 2])
def test_what_a_job_raises_is_raised_here(jobs_module, count):
    with open_pool(count) as pool:
        with pytest.raises(ZeroDivisionError):
            pool.submit(truediv, 1, 0).result()
        assert pool.submit(add, 1, 1).result() == 2  # the others go on
        with pytest.raises(KeyboardInterrupt):
            pool.submit(jobs_module.raise_interrupt).result()


def test_errors_of_workers_say_where_they_were_raised(jobs_module):
    with ProcessPool(1) as pool:
        with pytest.raises(ZeroDivisionError) as caught:
            pool.submit(truediv, 1, 0).result()
        assert "In a worker process:\nTraceback" in caught.value.__notes__[0]
        with pytest.raises(RuntimeError, match="Unpicklable: 1 and 2"):
            pool.submit(jobs_module.raise_unpicklable).result()


def test_a_dead_worker_ends_the_pool_and_says_how_it_died(jobs_module):
    with ProcessPool(2, advice="Check the memory.") as pool:
        process = pool.submit(os.getpid).result()
        busy = pool.submit(jobs_module.sleep_for_hours)
        os.kill(process, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match=r"A worker process died by signal 9\. Check the memory\."):
            busy.result()
    assert gone(process)
    with pytest.raises(ConfigError, match="closed"):
        pool.submit(add, 1, 1)


def test_a_worker_that_cannot_begin_is_a_dead_one(capfd):
    with pytest.raises(WorkerDiedError, match="with exit code 1"), ProcessPool(1, truediv, (1, 0)) as pool:
        pool.submit(add, 1, 1).result()
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_leaving_by_an_error_ends_workers_in_the_middle_of_their_jobs(jobs_module):
    pool = ProcessPool(2)
    process = pool.submit(os.getpid).result()
    pool.submit(jobs_module.sleep_for_hours)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), pool:
        raise KeyboardInterrupt
    assert time.monotonic() - began < 5
    assert gone(process)


def test_what_cannot_be_pickled_is_named():
    assert check_portable((1, "one"), "It", "")
    with pytest.raises(ConfigError, match=r"The strategy cannot be handed to another process .*\. Write a module\."):
        check_portable(lambda: None, "The strategy", "Write a module.")


def test_there_must_be_a_worker():
    with pytest.raises(ConfigError, match="workers is 0"):
        ProcessPool(0)


SCRIPT = """
import os, sys, time
from asyncfed.runs.process_pool import ProcessPool

def report_and_sleep():
    print(os.getpid(), flush=True)
    time.sleep(10_000)

if __name__ == "__main__":
    with ProcessPool(2) as pool:
        jobs = [pool.submit(report_and_sleep) for _ in range(2)]
        for job in pool.finished(jobs):
            job.result()
"""


@pytest.fixture
def script(tmp_path):
    """A running script whose two workers are asleep; the workers' process ids."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    going = subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             start_new_session=True)  # fmt: skip
    yield going, [int(going.stdout.readline()) for _ in range(2)]
    if going.poll() is None:
        os.killpg(going.pid, signal.SIGKILL)
    going.communicate()


def test_workers_end_when_their_parent_is_killed(script):
    going, workers = script
    going.kill()
    assert all(map(gone, workers))


def test_ctrl_c_in_the_terminal_ends_all_and_only_the_parent_complains(script):
    going, workers = script
    os.killpg(going.pid, signal.SIGINT)  # as a terminal does it: to every process
    _, complaint = going.communicate(timeout=20)
    assert all(map(gone, workers))
    assert complaint.count("KeyboardInterrupt") == 1
    assert going.returncode != 0


def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT).replace('if __name__ == "__main__":', "if True:"))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=False)
    assert "WorkerDiedError: A worker process died with exit code 1" in done.stderr
