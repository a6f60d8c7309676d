"""Live runs where an event loop is running already, as in a notebook."""

import asyncio
import os
import signal
import threading

import pytest

from asyncfed.core.types import Budget
from asyncfed.live.local.event_loop import run_to_end
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.runs.live import run_live
from asyncfed.runs.verify import verify


def threads_of(inside_a_loop):
    seen = []

    async def work():
        seen.append(threading.current_thread() is threading.main_thread())

    async def cell():
        run_to_end(work())

    if inside_a_loop:
        asyncio.run(cell())
    else:
        run_to_end(work())
    return seen


def test_without_a_loop_it_runs_in_this_thread():
    assert threads_of(inside_a_loop=False) == [True]


def test_inside_a_loop_it_runs_in_another():
    assert threads_of(inside_a_loop=True) == [False]


@pytest.mark.parametrize("inside_a_loop", [False, True])
def test_errors_arrive(inside_a_loop):
    async def work():
        raise ValueError("a full disk")

    async def cell():
        run_to_end(work())

    with pytest.raises(ValueError, match="a full disk"):
        asyncio.run(cell()) if inside_a_loop else run_to_end(work())


def run_in_a_cell(experiment, **settings):
    async def cell():
        return run_live(experiment, **settings)

    return asyncio.run(cell())


def test_a_live_run_in_a_notebook_finishes_and_verifies(three_clients, tmp_path):
    run_in_a_cell(three_clients(), out=tmp_path / "live.sqlite")
    assert verify(tmp_path / "live.sqlite").ok


def test_an_interrupt_reaches_a_live_run_in_a_notebook(three_clients, tmp_path):
    def interrupt(progress):
        if not interrupted:
            interrupted.append(progress)
            os.kill(os.getpid(), signal.SIGINT)

    interrupted = []
    engine = LocalEngine(task_seconds=0.2, drain_seconds=0.0)
    run = run_in_a_cell(
        three_clients(budget=Budget(rounds=1000)), engine=engine, out=tmp_path / "live.sqlite", watch=interrupt
    )
    assert interrupted
    assert run.verdict == "interrupted"
