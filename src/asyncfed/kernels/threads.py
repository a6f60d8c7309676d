"""Splitting independent tasks among threads.

The kernels release the interpreter lock, so plain threads run them side by side. numba's own parallel layers are not
used: one aborts when the process forks after a call, another when two threads call at once, and where a core is busy
with something else their waiting threads spin (a call of 0.2 ms was seen to take 8).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from threading import Thread, current_thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError

SMALL = 2_500_000
"""Multiply-adds (0.4 to 1 ms) below which waking another thread costs more than it saves."""


class ThreadGroup:
    """Threads that stay, because starting one takes longer than most calls. They hold no state between calls."""

    def __init__(self, size: int) -> None:
        self._threads: list[Thread] = []
        self.pool = ThreadPoolExecutor(size, "asyncfed-kernel", lambda: self._threads.append(current_thread()))

    def is_alive(self) -> bool:
        """False in a process forked from the one that started the threads: a fork does not copy threads."""
        return all(thread.is_alive() for thread in self._threads)


_groups: dict[int, ThreadGroup] = {}


def _group_of(size: int) -> ThreadGroup:
    group = _groups.get(size)
    if group is None or not group.is_alive():
        group = _groups[size] = ThreadGroup(size)
    return group


def start_elsewhere(job: Callable[..., Any], *arguments: Any, threads: int) -> Future[Any]:
    """Have a job done by one of the `threads` − 1 other threads that `run_split` uses, once one is free."""
    return _group_of(threads - 1).pool.submit(job, *arguments)


def split_evenly(costs: NDArray[Any], parts: int) -> list[tuple[int, int]]:
    """At most `parts` non-empty runs [first, last) of tasks, in order, of about equal total cost.

    >>> split_evenly(np.array([5, 1, 1, 1, 1, 1]), 2)
    [(0, 1), (1, 6)]
    """
    total = np.cumsum(costs)
    wanted = total[-1] * np.arange(1, parts) / parts
    cuts = [0, *(np.searchsorted(total, wanted, side="left") + 1).tolist(), len(costs)]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def run_split(run: Callable[[int, int], None], costs: NDArray[Any], threads: int) -> None:
    """Call `run(first, last)` on parts that cover all tasks, side by side when that pays.

    `costs` are multiply-adds per task. The parts must write to separate places: then nothing depends on `threads`. The
    calling thread does a part itself.
    """
    if threads < 1:
        raise ConfigError(f"threads is {threads}; it must be at least 1.")
    count = len(costs)
    if threads == 1 or count < 2 or costs.sum() < SMALL:
        run(0, count)
        return
    own, *others = split_evenly(costs, threads)
    pool = _group_of(threads - 1).pool
    elsewhere = [pool.submit(run, first, last) for first, last in others]
    try:
        run(*own)
    finally:
        failures = [part.exception() for part in elsewhere]  # waits for each, in a fraction of the time of `wait`
    for failure in failures:
        if failure is not None:
            raise failure
