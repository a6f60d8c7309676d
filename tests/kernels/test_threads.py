"""Splitting tasks among threads."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.threads import SMALL, run_split, split_evenly


@given(costs=st.lists(st.integers(1, 1000), min_size=1, max_size=60), parts=st.integers(1, 9))
def test_parts_cover_every_task_once_and_none_is_much_too_dear(costs, parts):
    runs = split_evenly(np.array(costs), parts)
    assert [task for first, last in runs for task in range(first, last)] == list(range(len(costs)))
    assert len(runs) <= parts
    assert max(sum(costs[a:b]) for a, b in runs) <= sum(costs) / parts + max(costs)


def test_large_work_runs_in_several_threads_at_once():
    meeting = threading.Barrier(2, timeout=5)
    seen = []

    def run(first, last):
        meeting.wait()
        seen.append((first, last))

    run_split(run, np.full(4, SMALL), threads=2)
    assert sorted(seen) == [(0, 2), (2, 4)]


def test_small_work_stays_in_the_calling_thread():
    seen = []
    run_split(lambda a, b: seen.append((a, b, threading.get_ident())), np.full(4, 10), threads=8)
    assert seen == [(0, 4, threading.get_ident())]


@pytest.mark.parametrize("failing", [1, 2])
def test_an_error_is_raised_after_the_other_part_is_done(failing):
    done = []

    def run(first, last):
        if last == failing:
            raise ZeroDivisionError("in a part")
        done.append(last)

    with pytest.raises(ZeroDivisionError, match="in a part"):
        run_split(run, np.full(2, SMALL), threads=2)
    assert done == [3 - failing]


def marks(tasks=6, threads=3):
    """How often each task was run."""
    counts = np.zeros(tasks, int)

    def run(first, last):
        counts[first:last] += 1

    run_split(run, np.full(tasks, SMALL), threads)
    return counts.tolist()


def test_calls_from_several_threads_at_once_do_not_mix():
    with ThreadPoolExecutor(4) as callers:
        assert list(callers.map(lambda _: marks(), range(40))) == [[1] * 6] * 40


def answer(pipe):
    pipe.send(marks())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_a_forked_process_has_threads_of_its_own():
    assert marks() == [1] * 6
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=answer, args=(there,), daemon=True)
    child.start()
    answered = here.poll(10)
    child.kill()
    child.join()
    assert answered, "the forked process waits for threads that were not copied"
    assert here.recv() == [1] * 6


def test_no_threads_is_refused():
    with pytest.raises(ConfigError, match="threads is 0; it must be at least 1"):
        run_split(lambda a, b: None, np.ones(3), threads=0)
