"""Ctrl-C and SIGTERM: the run is saved; a SIGTERM then ends the program, a Ctrl-C leaves that to it."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import asyncfed as af
from asyncfed.runs.interruption import interruptible

SCRIPT = """
import os, signal, sys
import asyncfed as af

def stop(progress):
    if progress.updates:
        os.kill(os.getpid(), signal.{signal})

experiment = af.replace(af.presets.regression(), budget=af.Budget(updates=10**9))
run = af.run(experiment, out=sys.argv[1], threads=1, watch=stop)
print("the script goes on:", run.verdict, flush=True)
"""


def run_script(name, out):
    script = SCRIPT.format(signal=name)
    return subprocess.run([sys.executable, "-c", script, str(out)], capture_output=True, text=True, timeout=120)


def test_a_sigterm_saves_the_run_and_then_ends_the_script(tmp_path):
    out = tmp_path / "run.sqlite"
    ended = run_script("SIGTERM", out)
    assert ended.returncode == -signal.SIGTERM, ended.stderr
    assert ended.stdout == ""
    run = af.load(out)
    assert run.verdict == "interrupted"
    assert run.participation().sum() > 0  # saved at the moment of the signal, which was before any other checkpoint


def test_a_ctrl_c_saves_the_run_and_gives_it_back(tmp_path):
    ended = run_script("SIGINT", tmp_path / "run.sqlite")
    assert (ended.returncode, ended.stdout) == (0, "the script goes on: interrupted\n")
    assert af.load(tmp_path / "run.sqlite").participation().sum() > 0


@pytest.fixture
def sigterms():
    """A handler of the program's own, and what it received."""
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    yield received
    signal.signal(signal.SIGTERM, before)


def test_a_handler_of_the_programs_own_gets_the_sigterm_after_the_block(sigterms):
    with interruptible() as interrupted:
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupted.wait(5)
        assert sigterms == []
    assert sigterms == [signal.SIGTERM]


def test_a_second_signal_is_not_held_back(sigterms):
    with interruptible() as interrupted:
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupted.wait(5)
        os.kill(os.getpid(), signal.SIGTERM)
        assert sigterms == [signal.SIGTERM]


def press_ctrl_c_twice():
    with interruptible() as interrupted:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.wait(5)
        os.kill(os.getpid(), signal.SIGINT)


def test_a_second_ctrl_c_is_one_for_python():
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c_twice()


def test_handlers_are_put_back_whatever_happens(sigterms):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(ZeroDivisionError), interruptible():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_are_not_interrupted():
    seen = []

    def enter():
        with interruptible() as interrupted:
            seen.append(interrupted.is_set())

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [False]
    assert signal.getsignal(signal.SIGINT) is before
