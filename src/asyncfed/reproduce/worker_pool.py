"""Doing many independent pieces of work in processes of their own; whatever ends it early ends them too."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.experiment import Experiment
from asyncfed.reproduce.cached_runs import save_unit
from asyncfed.runs.cores import usable_cores
from asyncfed.runs.simulate import simulate
from asyncfed.runs.worker_process import become_worker

Job = tuple[Any, ...]


class Workers:
    """Calls a function of a module on many argument tuples, in `count` processes or, if that is 1, in this one."""

    def __init__(self, count: int, pool: ProcessPoolExecutor | None) -> None:
        self.count = count
        self._pool = pool

    def each(self, function: Callable[..., None], jobs: Sequence[Job]) -> Iterator[Job]:
        """The jobs as they are finished. Other processes begin at once, in the order given; this one when asked."""
        if self._pool is None:
            return _here(function, jobs)
        return _as_finished({self._pool.submit(function, *job): job for job in jobs})


def _here(function: Callable[..., None], jobs: Sequence[Job]) -> Iterator[Job]:
    for job in jobs:
        function(*job)
        yield job


def _as_finished(waiting: dict[Future[None], Job]) -> Iterator[Job]:
    for future in as_completed(waiting):
        try:
            future.result()
        except BrokenProcessPool as error:
            raise ConfigError(
                "A worker process died. Check that memory suffices, then run the same command again: it continues "
                "with what is left; --workers 1 needs no other process."
            ) from error
        yield waiting[future]


@contextmanager
def workers(count: int | None) -> Iterator[Workers]:
    """So many worker processes (default: one per usable core)."""
    if count is not None and count < 1:
        raise ConfigError(f"workers is {count}; it must be at least 1.")
    count = usable_cores() if count is None else count
    if count == 1:
        yield Workers(1, None)
        return
    context, others = multiprocessing.get_context("spawn"), multiprocessing.active_children()
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=become_worker)
    try:
        yield Workers(count, pool)
    except BaseException:
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()  # units are written whole or not at all, so nothing half-done can stay behind
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def simulate_unit(experiment: Experiment, path: Path) -> None:
    """Run an experiment and keep what the figures need. A run that diverges is a result too."""
    done = simulate(experiment, threads=1)
    if not done.finished:
        raise KeyboardInterrupt
    save_unit(done, path)
